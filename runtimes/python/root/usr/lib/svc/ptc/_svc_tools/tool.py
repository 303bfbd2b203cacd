"""A tool as the program sees it: a function of __main__ that takes the properties of the tool's schema.

By keyword, or by position: required properties first, then optional ones, each in the schema's order. A property whose name is no
identifier is also reached as one (`from_` for `from`, `start_date` for `start-date`). None leaves an optional property out and is null for a
required one. Every call that fits is issued exactly once, when the function is called.
"""

import os
import sys

from . import values

SOCKET = "/run/svc/3190.sock"


class ToolExecutionError(Exception):
    """A tool that failed. `tool_name` and `call_id` tell which call; a call that was never sent has no id."""

    def __init__(self, message="", tool_name=None, call_id=None):
        super().__init__(message)
        self.tool_name = tool_name
        self.call_id = call_id


ToolExecutionError.__module__ = "__main__"


class Tool:
    """One tool. Passes for a function wherever Python code looks at what kind of object it is."""

    __module__ = "__main__"
    __class__ = property(lambda self: type(lambda: None))

    def __init__(self, definition, max_bytes):
        schema = definition["parameters"]
        schema = schema if isinstance(schema, dict) else {}
        properties = schema.get("properties")
        properties = list(properties) if isinstance(properties, dict) else []
        required = schema.get("required")
        required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        self.__name__ = self.__qualname__ = definition["identifier"]
        self.__doc__ = definition["description"]
        self._name = definition["name"]
        self._max_bytes = max_bytes
        self._required = [name for name in properties if name in required]
        self._required += [name for name in dict.fromkeys(required) if name not in properties]
        self._order = self._required + [name for name in properties if name not in required]
        self._open = schema.get("additionalProperties") is not False
        self._aliases = None

    def __call__(self, /, *args, **kwargs):
        from . import call

        body = values.encode_call(self._name, self._bind(args, kwargs))
        if len(body) > self._max_bytes:
            raise ToolExecutionError(
                f"the call of {self.__name__}() has {len(body)} bytes; at most {self._max_bytes} can be sent", self._name
            )
        return call.issue(self._name, body)

    def _bind(self, args, kwargs):
        """The arguments by property name; TypeError, as from any function, for those that do not fit."""
        order = self._order
        if not order and self._open and len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            return args[0]
        if len(args) > len(order):
            raise TypeError(f"{self.__name__}() takes at most {len(order)} positional arguments but {len(args)} were given")
        bound = dict(zip(order, args))
        for keyword, value in kwargs.items():
            name = keyword if keyword in order else self._alias(keyword)
            if name in bound:
                raise TypeError(f"{self.__name__}() got multiple values for argument {keyword!r}")
            if not self._open and name not in order:
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument {keyword!r}")
            bound[name] = value
        missing = [name for name in self._required if name not in bound]
        if missing:
            raise TypeError(f"{self.__name__}() is missing required arguments: {', '.join(map(repr, missing))}")
        return {
            name: value
            for name, value in bound.items()
            if value is not None or name in self._required or name not in order
        }

    def _alias(self, keyword):
        """The property that a keyword stands for; the keyword itself when it stands for none."""
        if self._aliases is None:
            self._aliases = _aliases(self._order)
        return self._aliases.get(keyword, keyword)

    @property
    def __signature__(self):
        from inspect import Parameter, Signature
        from keyword import iskeyword

        spelled = {name: alias for alias, name in _aliases(self._order).items()}
        parameters = []
        for name in self._order:
            shown = spelled.get(name, name)
            if shown.isidentifier() and not iskeyword(shown):
                default = Parameter.empty if name in self._required else None
                parameters.append(Parameter(shown, Parameter.POSITIONAL_OR_KEYWORD, default=default))
        if self._open or len(parameters) < len(self._order):
            rest = "kwargs"
            while rest in self._order:
                rest += "_"
            parameters.append(Parameter(rest, Parameter.VAR_KEYWORD))
        return Signature(parameters)

    def __reduce__(self):
        return self.__name__

    def __repr__(self):
        return f"<function {self.__name__}>"


def _aliases(names):
    """Identifiers for names that are none, unless two names would share one or it is the name of another property."""
    from keyword import iskeyword

    aliases = {}
    taken = set(names)
    for name in names:
        alias = "".join("_" if letter in "-./:" or letter.isspace() else letter for letter in name)
        alias = "".join(letter for letter in alias if letter.isalnum() or letter == "_")
        if alias[:1].isdigit():
            alias = "_" + alias
        if iskeyword(alias):
            alias += "_"
        if alias == name or not alias.isidentifier():
            continue
        if alias in taken:
            aliases.pop(alias, None)
        else:
            aliases[alias] = name
            taken.add(alias)
    return aliases


def define_tools(namespace):
    """Puts every tool and ToolExecutionError into a main module's namespace."""
    global SOCKET
    SOCKET = os.environ.get("SANDBOX_TOOL_SOCKET", SOCKET)
    namespace["ToolExecutionError"] = ToolExecutionError
    with open(os.path.join(os.path.dirname(SOCKET), "tools.json"), "rb") as file:
        description = values.decode(file.read())
    for definition in description["tools"]:
        namespace[definition["identifier"]] = Tool(definition, description["max_bytes"])
