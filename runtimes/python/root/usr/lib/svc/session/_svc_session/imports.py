"""Imports modules of the interpreter, whatever files of the same name the workspace has.

Programs import from their folder first, as python3 does. The modules that carry their variables must not: a json.py of the
workspace is not the standard json. When the program itself asks for a module that both have, it is imported anew, from the
workspace.
"""

import os
import sys

PREFIX = sys.prefix + os.sep
# Saved variables and pickling itself name them, so they stay, whatever the workspace has.
NAMED = (__package__, "cloudpickle", "copyreg")


def own(name):
    """The module of that name, of the interpreter or of its packages."""
    found = sys.modules.get(name)
    if found is not None and _is_own(found):
        return found
    path, programs = sys.path, {}
    for loaded, module in list(sys.modules.items()):
        if loaded != "__main__" and not _is_own(module):
            programs[loaded] = sys.modules.pop(loaded)
    before = set(sys.modules)
    sys.path = [entry for entry in path if str(entry).startswith(PREFIX)]
    try:
        __import__(name)
        return sys.modules[name]
    finally:
        sys.path = path
        shadowed = _names_in(path)
        for new in set(sys.modules) - before:
            top = new.partition(".")[0]
            if top not in NAMED and (top in shadowed or top in programs) and not _is_built_in(sys.modules[new]):
                del sys.modules[new]
        sys.modules.update(programs)


def _is_own(module):
    return _is_built_in(module) or _origin_of(module).startswith(PREFIX)


def _is_built_in(module):
    """Python looks for these before it looks into any folder."""
    return _origin_of(module) in ("built-in", "frozen")


def _origin_of(module):
    try:
        return str(module.__spec__.origin)
    except Exception:
        return ""


def _names_in(path):
    """Names of the modules that folders of the program may have."""
    names = set()
    for entry in path:
        if not str(entry).startswith(PREFIX):
            try:
                names.update(name.partition(".")[0] for name in os.listdir(entry or "."))
            except (OSError, TypeError, ValueError):
                pass  # it is no folder
    return names
