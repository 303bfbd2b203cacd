"""cloudpickle, fitted to sessions.

Functions of the program get the live namespace of the next program, so that they see its later changes; cloudpickle gives them
a namespace of their own. Values that would come back as something else are not saved: files, of which cloudpickle saves the
text, and memory views.
"""

import copyreg
import dataclasses
import functools
import io
import sys
from importlib.util import MAGIC_NUMBER
from types import CodeType, FunctionType

import cloudpickle
from cloudpickle import cloudpickle as parts

from .plain import MODULE, PROTOCOL, import_module

EARLIER = "<earlier run>"  # shown as the file of functions: main.py has other lines by now
# Values that others know by their identity, and that pickle would copy.
NAMED = {id(value): name for name, value in vars(dataclasses).items() if type(value).__name__.endswith(("_TYPE", "_CLASS"))}
STREAMS = ("stdin", "stdout", "stderr")


def make_function(code, closure):
    return FunctionType(code, vars(sys.modules["__main__"]), None, None, closure)


def set_function_state(function, state):
    builtins = function.__globals__["__builtins__"]
    parts._function_setstate(function, state)
    function.__globals__["__builtins__"] = builtins


def make_code(magic, *parts):
    if magic != MAGIC_NUMBER:
        raise TypeError("it has code of another version of Python")
    return CodeType(*parts)


def make_cached(parameters, function):
    return functools.lru_cache(**parameters)(function)


def stream(name):
    return getattr(sys, name)


def _code_reducer(path):
    """`path`: of the program. This is not a method of the pickler: both would form a reference cycle and wait for the collector."""

    def reduce(code):
        if code.co_filename == path:
            code = code.replace(co_filename=EARLIER)
        _make, arguments = parts._code_reduce(code)
        return make_code, (MAGIC_NUMBER, *arguments)

    return reduce


def _reduce_cached(function):
    """The cache starts empty. functools itself saves only a name, as for functions that can be imported."""
    if function.__module__ != "__main__":
        return function.__reduce__()
    return make_cached, (function.cache_parameters(), function.__wrapped__), vars(function)


def _reduce_text_file(file):
    for name in STREAMS:
        if file is getattr(sys, name):
            return stream, (name,)
    return _refuse(file)


def _refuse(value):
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise TypeError(f"cannot pickle {name!r} object")


class ByValuePickler(cloudpickle.Pickler):
    """Has `modules`, the names of the modules that loading needs. `program`: its path and its namespace."""

    def __init__(self, file, program):
        path, self._namespace = program
        # Looked up for each object: one dict is faster than cloudpickle's chain.
        self.dispatch_table = {
            **copyreg.dispatch_table,
            **cloudpickle.Pickler.dispatch_table.maps[0],
            CodeType: _code_reducer(path),
            functools._lru_cache_wrapper: _reduce_cached,
            io.TextIOWrapper: _reduce_text_file,
            memoryview: _refuse,
        }
        super().__init__(file, protocol=PROTOCOL)
        self.modules = set()

    def reducer_override(self, value):
        kind = type(value)
        if kind is MODULE:
            if sys.modules.get(value.__name__) is value:
                self.modules.add(value.__name__)
                return import_module, (value.__name__,)
        elif isinstance(value, (type, FunctionType)) or kind is type(len):
            self.modules.add(value.__module__)
        elif (name := NAMED.get(id(value))) is not None:
            return name
        return super().reducer_override(value)

    def _dynamic_function_reduce(self, function):
        reduced = super()._dynamic_function_reduce(function)
        if function.__globals__ is not self._namespace:
            return reduced
        _make, (code, _globals, _name, _defaults, closure), (attributes, slots), *_ = reduced
        slots["__globals__"] = {}
        return make_function, (code, closure), (attributes, slots), None, None, set_function_state
