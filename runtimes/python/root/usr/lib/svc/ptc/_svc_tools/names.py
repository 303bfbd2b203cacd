"""The names that every program finds ready, without the cost of those that it does not use.

A name that the program uses is bound to the real thing. A module that only text evaluated later could name is bound to an
object that imports it at first use. typing has no such placeholder: where text may be evaluated, its names are bound as well.
"""

import os
import sys

MODULES = ("asyncio", "json")
TYPING = frozenset(
    "Any Awaitable Callable ClassVar Coroutine DefaultDict Dict Final FrozenSet Generator Generic Iterable Iterator List Literal "
    "Mapping NamedTuple NoReturn Optional Protocol Sequence Set Tuple Type TypedDict TypeVar Union cast".split()
)
EVALUATES_TEXT = frozenset(("eval", "exec", "globals", "get_type_hints", "dataclass"))
CO_FUTURE_ANNOTATIONS = 0x1000000


class _Later(type(sys)):
    """A module that is imported at its first use."""

    def __getattr__(self, name):
        __import__(self.__name__)
        return getattr(sys.modules[self.__name__], name)


def make_ready(code, namespace):
    used = set()
    _collect_names(code, used)
    for name in MODULES:
        namespace[name] = __import__(name) if name in used or name in sys.modules else _Later(name)
    namespace["os"] = os
    namespace["sys"] = sys
    if code.co_flags & CO_FUTURE_ANNOTATIONS or not used.isdisjoint(EVALUATES_TEXT):
        used |= TYPING
    wanted = used & TYPING
    if wanted:
        import typing

        for name in wanted:
            namespace[name] = getattr(typing, name)


def _collect_names(code, into):
    into.update(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            _collect_names(constant, into)
