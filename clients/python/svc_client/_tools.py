"""The caller's functions as tools of a program: how they are described to it, and how its calls become their results."""

from __future__ import annotations

import asyncio
import inspect
import json
import typing
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from ._base import InvalidAnswer
from ._shape import Fields

#: JSON Schema's names of the types that a signature may tell.
_TYPES: Dict[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    dict: "object",
}
MAX_MESSAGE = 4096
#: What a function may raise to fail its call alone. Nobody cancels a single call, so a function that says so was let down by its own work.
FAILURES = (Exception, asyncio.CancelledError)


@dataclass(frozen=True)
class Tool:
    """
    A function with its description told. `parameters`: JSON schema of its arguments; None takes it from the signature. The function may be
    asynchronous.
    """

    function: Callable[..., Any]
    description: Optional[str] = None
    parameters: Optional[Mapping[str, Any]] = None


Tools = Mapping[str, Union[Tool, Callable[..., Any]]]


@dataclass(frozen=True)
class ToolCall:
    """The program calls a function, and waits. Also an event of a program that is watched."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    event: ClassVar[str] = "call"


@dataclass(frozen=True)
class Pause:
    """The program waits for the results of `calls`."""

    token: str
    calls: Tuple[ToolCall, ...]


def checked_tools(tools: Tools) -> Dict[str, Tool]:
    found = {name: tool if isinstance(tool, Tool) else Tool(tool) for name, tool in tools.items()}
    for name, tool in found.items():
        if not callable(tool.function):
            raise TypeError(f"the tool {name} is not a function")
    return found


def definitions(tools: Mapping[str, Tool]) -> List[Dict[str, Any]]:
    """As the service takes them."""
    return [_definition(name, tool) for name, tool in tools.items()]


def _definition(name: str, tool: Tool) -> Dict[str, Any]:
    description = inspect.getdoc(tool.function) if tool.description is None else tool.description
    parameters = _schema(tool.function) if tool.parameters is None else dict(tool.parameters)
    fields = {"name": name, "description": description, "parameters": parameters}
    return {key: value for key, value in fields.items() if value is not None}


def _schema(function: Callable[..., Any]) -> Optional[Dict[str, Any]]:
    """None where a signature cannot be read: then any arguments come. Raises TypeError for parameters that have no name to a caller."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    if any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters):
        raise TypeError(f"{function!r} has positional-only parameters; tools are called by keyword")
    hints = _hints(function)
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {
        "type": "object",
        "properties": {one.name: _type_of(hints.get(one.name)) for one in named},
        "required": [one.name for one in named if one.default is one.empty],
        "additionalProperties": any(one.kind is one.VAR_KEYWORD for one in parameters),
    }


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # Annotations may be anything.
        return {}


def _type_of(hint: Any) -> Dict[str, Any]:
    origin = typing.get_origin(hint) or hint
    if origin is Union:
        kinds = [one for one in typing.get_args(hint) if one is not type(None)]
        return _type_of(kinds[0]) if len(kinds) == 1 else {}
    try:
        name = _TYPES.get(origin)
    except TypeError:
        return {}
    return {} if name is None else {"type": name}


def pause_of(answer: Fields) -> Pause:
    calls = tuple(
        ToolCall(call.text("id"), call.text("name"), call.inner("arguments").raw)
        for call in answer.objects("tool_calls")
    )
    if not calls:
        raise InvalidAnswer("The answer is not valid: tool_calls is empty.")
    return Pause(answer.text("continuation_token"), calls)


def invoke(tools: Mapping[str, Tool], call: ToolCall) -> Any:
    """What the function returns: a value, or something to await. Its exceptions come through."""
    tool = tools.get(call.name)
    if tool is None:
        raise LookupError(f"there is no tool {call.name}")
    return tool.function(**call.arguments)


def succeeded(call: ToolCall, value: Any) -> Dict[str, Any]:
    """The result of a call. A value that is not JSON fails the call."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return failed(call, TypeError(f"the result of {call.name} is not JSON: {error}"))
    return {"call_id": call.id, "result": value}


def failed(call: ToolCall, error: BaseException) -> Dict[str, Any]:
    """The program sees ToolExecutionError with the exception's text."""
    text = str(error) or type(error).__name__
    return {"call_id": call.id, "is_error": True, "error_message": text[:MAX_MESSAGE]}
