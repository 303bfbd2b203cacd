"""Runs a program of a session (become): loads the variables of the previous program, and saves its own variables at its end.

They are saved at a normal end, after sys.exit and after an uncaught exception, by the process that loaded them. Copies of that
process (os.fork, multiprocessing) save nothing.
"""

import atexit
import gc
import os
import sys

if "_svc_tools.become" not in sys.modules:
    sys.path[0] = "/usr/lib/svc/ptc"  # become puts the program's folder there

from _svc_tools import become

from . import figures, state
from .imports import own

# Of this run, until it is saved. atexit calls a function of the module, since one that is made here would be seen at the program's end.
run_of = {}


class collector_paused:
    """Many objects are made, and none that has to be collected; what the program left is collected at its end."""

    def __enter__(self):
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_):
        if self._was_enabled:
            gc.enable()


def run():
    """Runs the program that the arguments name."""
    become.run(_load, _execute)


def _load(path, namespace):
    folder = os.path.dirname(path)
    run_of.update(program=(path, namespace), process=os.getpid(), lost=_restore(folder, namespace))
    # atexit calls the handler last that was registered first.
    atexit.register(_save)
    return compile(become.source_of(path), path, "exec", dont_inherit=True)


def _execute(code, namespace):
    try:
        exec(code, namespace)
    finally:
        figures.keep_open()


def _restore(folder, namespace):
    last = os.path.join(folder, state.LAST)
    try:
        os.rename(os.path.join(folder, state.FILE), last)
        file = open(last, "rb", buffering=0)
    except OSError:
        return []
    with file, collector_paused():
        return own(f"{__package__}.load").load(file, namespace)


def _save():
    # Removed from run_of: what is kept there would outlive the program's main module.
    process, program, lost = run_of.pop("process"), run_of.pop("program"), run_of.pop("lost")
    if process != os.getpid():
        return
    try:
        _save_all(program, lost)
    except BaseException:
        pass  # no descriptor is left, for example: the older variables stay
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _interrupt_again()


def _interrupt_again():
    """The interpreter ends by the signal when the last code that it ran from a text was interrupted; imported modules have run some since."""
    try:
        exec("raise KeyboardInterrupt", {})
    except KeyboardInterrupt:
        pass


def _save_all(program, lost):
    path, namespace = program
    variables = [
        (name, value)
        for name, value in list(namespace.items())
        if isinstance(name, str) and not (name.startswith("__") and name.endswith("__")) and value is not namespace
    ]
    if opened := figures.opened():
        variables.append((state.FIGURES, opened))
    if not variables and not lost:
        _forget(os.path.dirname(path))
        return
    with collector_paused():
        own(f"{__package__}.save").save(program, variables, lost)


def _forget(folder):
    """No variables, no file."""
    for name in (state.FILE, state.LAST):
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass
