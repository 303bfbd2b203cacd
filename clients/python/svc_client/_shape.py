"""Reads JSON of the service, which may be anything: wrong types raise InvalidAnswer, and further fields are allowed."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._base import InvalidAnswer

#: Longer integers are not numbers of the service; reading them takes time that grows with the square of their length.
MAX_DIGITS = 400


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number is too long")
    return int(digits)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_object(data: bytes) -> Dict[str, Any]:
    """The JSON object in the bytes. Raises InvalidAnswer."""
    try:
        value = json.loads(data.decode("utf-8"), parse_int=_integer, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer("The answer is not JSON.") from error
    if not isinstance(value, dict):
        raise InvalidAnswer("The answer is not a JSON object.")
    return value


class Fields:
    """The fields of one object. `where`: its place in the answer, for messages."""

    def __init__(self, value: object, where: str = "") -> None:
        if not isinstance(value, Mapping):
            raise InvalidAnswer(f"{where or 'The answer'} is not an object.")
        self.raw: Mapping[str, Any] = value
        self._where = f"{where}." if where else ""

    def _wrong(self, name: str, wanted: str) -> InvalidAnswer:
        return InvalidAnswer(f"The answer is not valid: {self._where}{name} must be {wanted}.")

    def optional_text(self, name: str) -> Optional[str]:
        value = self.raw.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "a string")

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if value is None:
            raise self._wrong(name, "a string")
        return value

    def number(self, name: str) -> float:
        value = self.raw.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return value
        raise self._wrong(name, "a number")

    def integer(self, name: str) -> int:
        value = self.number(name)
        if value != int(value):
            raise self._wrong(name, "an integer")
        return int(value)

    def optional_integer(self, name: str) -> Optional[int]:
        return None if self.raw.get(name) is None else self.integer(name)

    def flag(self, name: str) -> bool:
        value = self.raw.get(name)
        if value is None or isinstance(value, bool):
            return value is True
        raise self._wrong(name, "true or false")

    def items(self, name: str) -> List[object]:
        value = self.raw.get(name)
        if isinstance(value, list):
            return value
        raise self._wrong(name, "a list")

    def objects(self, name: str) -> "List[Fields]":
        return [Fields(item, f"{self._where}{name}[{at}]") for at, item in enumerate(self.items(name))]

    def optional_objects(self, name: str) -> "List[Fields]":
        return [] if self.raw.get(name) is None else self.objects(name)

    def inner(self, name: str) -> "Fields":
        return Fields(self.raw.get(name), f"{self._where}{name}")

    def optional_inner(self, name: str) -> "Optional[Fields]":
        return None if self.raw.get(name) is None else self.inner(name)

    def texts(self, name: str) -> Tuple[str, ...]:
        """Absent counts as empty."""
        value = [] if self.raw.get(name) is None else self.items(name)
        texts = tuple(item for item in value if isinstance(item, str))
        if len(texts) != len(value):
            raise self._wrong(name, "a list of strings")
        return texts
