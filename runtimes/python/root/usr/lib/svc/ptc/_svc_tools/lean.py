"""Imports asyncio in half the time: what its modules import, but do not need until much later, is imported when they need it.

While asyncio is imported, stand-ins lie in the place of those modules, with the few names that are read at once; afterwards they are known to
asyncio alone, and each leads to the real module at its first use. The program imports and sees the real modules.
"""

import sys

CONSTANTS = ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")
ANNOTATIONS = ("Any", "Awaitable", "Callable", "Iterable", "List", "Optional", "Tuple", "Type", "Union", "final")


class _Later(type(sys)):
    """A module that is imported at its first use."""

    def __getattr__(self, name):
        if name.startswith("__") or sys.modules.get(self.__name__) is self:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        __import__(self.__name__)
        return getattr(sys.modules[self.__name__], name)


class _Logger:
    """The logger of asyncio. While nobody has imported logging, nobody has asked for messages below a warning."""

    def debug(self, *args, **options):
        if "logging" in sys.modules:
            self.__getattr__("debug")(*args, **options)

    def __getattr__(self, name):
        import logging

        return getattr(logging.getLogger("asyncio"), name)


class _Annotation:
    """A name of typing in the annotations of asyncio; as a decorator it changes nothing."""

    __module__ = "typing"

    def __init__(self, text):
        self._text = text

    def __getitem__(self, parameters):
        parameters = parameters if isinstance(parameters, tuple) else (parameters,)
        return _Annotation(f"{self._text}[{', '.join(getattr(each, '__name__', None) or repr(each) for each in parameters)}]")

    def __call__(self, decorated):
        return decorated

    def __repr__(self):
        return self._text


def _extract_stack(*args, **options):
    import traceback

    return traceback.extract_stack(*args, **options)


def _read_at_once():
    return {
        "concurrent": {},
        "concurrent.futures": {name: name for name in CONSTANTS},
        "inspect": {},
        "linecache": {},
        "logging": {"getLogger": lambda _name: _Logger(), "DEBUG": 10},
        "ssl": {},
        "asyncio.sslproto": {},
        "subprocess": {"PIPE": -1, "STDOUT": -2, "DEVNULL": -3},
        "traceback": {"extract_stack": _extract_stack},
        "typing": {name: _Annotation(f"typing.{name}") for name in ANNOTATIONS},
    }


def import_asyncio():
    """Imports asyncio. A module that is there already stays; what one of them needs of the others is then there, too."""
    if "asyncio" in sys.modules:
        return sys.modules["asyncio"]
    names = _read_at_once()
    if not sys.modules.keys().isdisjoint(names):
        return __import__("asyncio")
    stand_ins = {name: _Later(name) for name in names}
    for name, stand_in in stand_ins.items():
        vars(stand_in).update(names[name])
    stand_ins["concurrent"].futures = stand_ins["concurrent.futures"]
    sys.modules.update(stand_ins)
    try:
        return __import__("asyncio")
    finally:
        for name, stand_in in stand_ins.items():
            del sys.modules[name]
            for known in names[name]:
                delattr(stand_in, known)
