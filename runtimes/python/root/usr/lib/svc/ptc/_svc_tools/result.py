"""What a tool returns while an event loop runs in the calling thread.

It acts as a coroutine for everything that takes one (await, gather, tasks, wait_for, TaskGroup), and as the tool's value for
everything else. Its first use as a value waits for the answer and blocks the event loop meanwhile. It may be awaited more than
once. Code that looks at identity or exact type (`is None`, `type(x)`, patterns) finds the value only after an await.
"""

import operator
import sys

# Modules that must not see the value: they look for something to await, or (json) leave unknown objects to a hook that knows results.
_BLIND = frozenset(("asyncio", "inspect", "types", "anyio", "sniffio", "contextlib", "json"))
_AWAITABLES = frozenset(("Awaitable", "Coroutine", "Generator", "AsyncIterator", "AsyncIterable", "AsyncGenerator", "Future"))


def value_of(thing):
    return thing._svc_value() if type(thing) is Result else thing


def _sees_no_value(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0] in _BLIND


class Result:
    __slots__ = ("_svc_call", "_svc_steps", "__weakref__")

    # What asyncio reads when it describes a coroutine.
    __name__ = __qualname__ = "tool_call"
    cr_await = cr_code = cr_frame = cr_origin = None
    cr_running = False

    def __init__(self, call):
        self._svc_call = call
        self._svc_steps = None

    def _svc_value(self):
        return self._svc_call.value()

    def __await__(self):
        return self._svc_call.wait()

    def send(self, value):
        if self._svc_steps is None:
            self._svc_steps = self._svc_call.wait()
        return self._svc_steps.send(value)

    def throw(self, *error):
        if self._svc_steps is None:
            self._svc_steps = self._svc_call.wait()
        return self._svc_steps.throw(*error)

    def close(self):
        if self._svc_steps is not None:
            self._svc_steps.close()

    @property
    def __class__(self):
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__") == "abc":
            if getattr(frame.f_locals.get("cls"), "__name__", "") in _AWAITABLES:
                return Result
            frame = frame.f_back
        return Result if _sees_no_value(frame) else type(self._svc_value())

    # asyncio keeps what it is to await in sets and dictionaries.
    def __hash__(self):
        return object.__hash__(self) if _sees_no_value(sys._getframe(1)) else hash(self._svc_value())

    def __eq__(self, other):
        return self is other if _sees_no_value(sys._getframe(1)) else self._svc_value() == value_of(other)

    def __getattr__(self, name):
        return getattr(self._svc_value(), name)

    def __reduce_ex__(self, protocol):
        # Unpickled as the plain value, even where this package cannot be imported.
        return operator.getitem, ([self._svc_value()], 0)

    def __deepcopy__(self, memo):
        import copy

        return copy.deepcopy(self._svc_value(), memo)

    def __copy__(self):
        import copy

        return copy.copy(self._svc_value())

    def __fspath__(self):
        value = self._svc_value()
        if isinstance(value, str):
            return value
        raise TypeError(f"expected str, bytes or os.PathLike object, not {type(value).__name__}")

    def __pow__(self, exponent, modulus=None):
        return pow(self._svc_value(), value_of(exponent), modulus)

    def __rpow__(self, base):
        return pow(base, self._svc_value())

    def __round__(self, *digits):
        return round(self._svc_value(), *digits)

    def __trunc__(self):
        return self._svc_value().__trunc__()

    def __floor__(self):
        import math

        return math.floor(self._svc_value())

    def __ceil__(self):
        import math

        return math.ceil(self._svc_value())


def _delegate(function):
    def method(self, *operands):
        return function(self._svc_value(), *map(value_of, operands))

    return method


def _reflect(function):
    def method(self, other):
        return function(value_of(other), self._svc_value())

    return method


for _name in ("ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs", "index", "getitem", "setitem", "delitem", "contains"):
    setattr(Result, f"__{_name}__", _delegate(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "lshift", "rshift", "and_", "xor", "or_"):
    _function, _name = getattr(operator, _name), _name.rstrip("_")
    setattr(Result, f"__{_name}__", _delegate(_function))
    setattr(Result, f"__r{_name}__", _reflect(_function))
for _function in (str, repr, bool, int, float, complex, len, iter, reversed, dir, format, divmod):
    setattr(Result, f"__{_function.__name__}__", _delegate(_function))
Result.__rdivmod__ = _reflect(divmod)


def _write_results_as_values(encoder):
    plain = encoder.JSONEncoder.default

    def default(self, o):
        return o._svc_value() if type(o) is Result else plain(self, o)

    default.__doc__ = plain.__doc__
    encoder.JSONEncoder.default = default


class _AtImportOfJson:
    """Changes json when the program imports it: json alone costs as much as half a start of Python."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "json.encoder":
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(_AtImportOfJson)
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def execute_and_tell(module):
            del spec.loader.exec_module
            execute(module)
            _write_results_as_values(module)

        spec.loader.exec_module = execute_and_tell
        return spec


_json_knows = False


def teach_json():
    """Makes json write results as their values, from now on or from its import on."""
    global _json_knows
    if _json_knows:
        return
    _json_knows = True
    if "json.encoder" in sys.modules:
        _write_results_as_values(sys.modules["json.encoder"])
    else:
        sys.meta_path.insert(0, _AtImportOfJson)
