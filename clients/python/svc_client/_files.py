"""Files of the service: what identifies one, and how a request refers to it."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Dict, Mapping, Optional, Sequence, TypeVar, Union

from ._base import InvalidAnswer
from ._shape import Fields

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
Self = TypeVar("Self", bound="FileInfo")


def checked_id(value: str) -> str:
    """An id as a part of a path: nothing else of a path may come with it. Raises ValueError."""
    if not isinstance(value, str) or _ID.match(value) is None:
        raise ValueError("an id has only characters of A-Z, a-z, 0-9, _ and -")
    return value


def version_text(version: float) -> str:
    """The version of a skill, as a query and a form have it: all of its digits, and no exponent."""
    return str(int(version)) if version % 1 == 0 else format(Decimal(str(version)), "f")


@dataclass(frozen=True)
class FileInfo:
    """
    A stored file. `name` is its path below /mnt/data. `size`: bytes. `inherited`: an input that the program did not change;
    `modified_from`: id of the input that the program changed.
    """

    id: str
    storage_session_id: str
    name: str
    size: int
    content_type: str
    kind: str = "user"
    resource_id: Optional[str] = None
    version: Optional[float] = None
    modified_from: Optional[str] = None
    inherited: bool = False
    entity_id: Optional[str] = None

    def named(self: Self, name: str) -> Self:
        """The same file, to appear under another path in a run."""
        return replace(self, name=name)

    def reference(self) -> Dict[str, Any]:
        """As an entry of a request's `files`."""
        optional = {"resource_id": self.resource_id, "version": self.version, "entity_id": self.entity_id}
        required = {"id": self.id, "storage_session_id": self.storage_session_id, "name": self.name, "kind": self.kind}
        return {**required, **{name: value for name, value in optional.items() if value is not None}}


@dataclass(frozen=True)
class InlineFile:
    """A small file that travels in the request: at most 1 MiB, 4 MiB for all of a request."""

    name: str
    content: Union[str, bytes]

    def reference(self) -> Dict[str, Any]:
        if isinstance(self.content, str):
            return {"name": self.name, "content": self.content}
        content = base64.b64encode(self.content).decode("ascii")
        return {"name": self.name, "content": content, "encoding": "base64"}


#: An input of a program. A mapping is sent as it is: an entry of `files` as docs/openapi.json has it.
InputFile = Union[FileInfo, InlineFile, Mapping[str, Any]]


def references(files: Sequence[InputFile]) -> "list[Dict[str, Any]]":
    return [dict(file) if isinstance(file, Mapping) else file.reference() for file in files]


def output_fields(entry: Fields) -> Dict[str, Any]:
    """The fields of FileInfo from an entry of an answer's `files`."""
    origin = entry.optional_inner("modified_from")
    return {
        "id": _answered_id(entry, "id"),
        "storage_session_id": _answered_id(entry, "storage_session_id"),
        "name": entry.text("name"),
        "size": entry.integer("size"),
        "content_type": entry.text("content_type"),
        "kind": entry.text("kind"),
        "resource_id": entry.optional_text("resource_id"),
        "version": None if entry.raw.get("version") is None else entry.number("version"),
        "modified_from": None if origin is None else _answered_id(origin, "id"),
        "inherited": entry.flag("inherited"),
        "entity_id": entry.optional_text("entity_id"),
    }


def upload_fields(entry: Fields) -> Dict[str, Any]:
    """The fields of FileInfo from a record of an upload."""
    return {
        "id": _answered_id(entry, "id"),
        "storage_session_id": _answered_id(entry, "storage_session_id"),
        "name": entry.text("name"),
        "size": entry.integer("size"),
        "content_type": entry.text("contentType"),
    }


def _answered_id(entry: Fields, name: str) -> str:
    try:
        return checked_id(entry.text(name))
    except ValueError as error:
        raise InvalidAnswer(f"The answer is not valid: {name} must be an id.") from error
