"""Becomes a program: runs in the __main__ of the prelude that called, as `python3 main.py` runs.

Guarantees: the module is __main__ with its file, loader, arguments and sys.path[0]; exits, signals and uncaught exceptions end the process
in the same way, and tracebacks show only frames of the program.
"""

import os
import sys

HIDDEN = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep


def run(load, execute):
    """Runs the program that the arguments name. `load` takes its path and its namespace, and returns its code. `execute` takes the
    code and the namespace."""
    arguments = sys.argv[1:]
    sys.argv[:] = arguments
    sys.orig_argv[1:] = arguments
    path = os.path.abspath(arguments[0])
    sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    namespace = vars(sys.modules["__main__"])
    namespace["__file__"] = path
    namespace["__loader__"].path = path
    code = None
    try:
        code = load(path, namespace)
        execute(code, namespace)
    except SystemExit:
        raise
    except BaseException:
        _hide_frames_when_shown(code)
        raise


def source_of(path):
    with open(path, "rb") as file:
        return file.read()


def _hide_frames_when_shown(code):
    """Makes the exception hook that is in place when the exception leaves the program show it without the frames of this package."""
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        return

    def show(kind, error, _trace):
        sys.excepthook = hook
        _clean(error, code, set())
        hook(kind, error, error.__traceback__)

    sys.excepthook = show


def _clean(error, code, seen):
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            frames.clear()
        if not trace.tb_frame.f_code.co_filename.startswith(HIDDEN):
            frames.append(trace)
        trace = trace.tb_next
    for frame, following in zip(frames, [*frames[1:], None]):
        frame.tb_next = following
    error.__traceback__ = frames[0] if frames else None
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if isinstance(other, BaseException):
            _clean(other, code, seen)
