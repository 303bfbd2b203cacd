"""The program's main module in children that multiprocessing starts anew (spawn and forkserver).

Such a child runs main.py again as a module. Imported by sitecustomize in exactly these children, and only where a program has tools; makes that
run the same as the first one: tools, ready names, top-level await.
"""

import multiprocessing.spawn
import sys

from . import start


def _run_main_again(path):
    current = sys.modules["__main__"]
    if getattr(current, "__file__", None) == path:
        return
    multiprocessing.spawn.old_main_modules.append(current)
    module = type(sys)("__mp_main__")
    module.__file__ = path
    sys.modules["__mp_main__"] = module
    start.execute(start.load(path, vars(module)), vars(module))
    sys.modules["__main__"] = module


multiprocessing.spawn._fixup_main_from_path = _run_main_again
