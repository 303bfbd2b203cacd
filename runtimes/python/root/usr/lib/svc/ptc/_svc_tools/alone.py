"""Runs source that awaits at top level without asyncio, whose import costs four starts of Python, where no program can notice the
difference.

No program can notice it when its source, as compiled, names neither asyncio nor a way to reach what it does not name, imports
only modules that never look for an event loop, and has no asynchronous generators. The program then awaits only its own
coroutines and its tools, one after the other.
"""

import os

from . import call

CO_ASYNC_GENERATOR = 0x200
REACHING = frozenset("asyncio __builtins__ __import__ __loader__ __spec__ compile eval exec globals locals modules vars".split())
IMPORTS = frozenset(
    "__future__ abc base64 bisect calendar cmath collections collections.abc copy csv dataclasses datetime decimal enum fractions functools glob hashlib heapq io "
    "itertools json math numbers operator os os.path pathlib pprint random re secrets shutil statistics string sys textwrap time types typing "
    "unicodedata uuid zlib".split()
)


def can_run(code, folder):
    """Whether a main module needs no event loop. `folder` is where it imports from first."""
    imported = set()
    if not _is_plain(code, imported) or not imported <= IMPORTS:
        return False
    return not imported or imported.isdisjoint(name.partition(".")[0] for name in os.listdir(folder))


def run(coroutine):
    """Does what asyncio.run does: whatever the coroutine awaits either waits by itself, or yields to no other task."""
    with call.awaiting():
        error = None
        while True:
            try:
                given = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration:
                return
            error = None if given is None else RuntimeError(f"Task got bad yield: {given!r}")


def _is_plain(code, imported):
    if code.co_flags & CO_ASYNC_GENERATOR or not REACHING.isdisjoint(code.co_names):
        return False
    _collect_imports(code, imported)
    return all(_is_plain(constant, imported) for constant in code.co_consts if isinstance(constant, type(code)))


def _collect_imports(code, into):
    from opcode import EXTENDED_ARG, opmap

    IMPORT_NAME = opmap["IMPORT_NAME"]
    argument = 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2]):
        argument |= low
        if operation == IMPORT_NAME:
            into.add(code.co_names[argument])
        argument = argument << 8 if operation == EXTENDED_ARG else 0
