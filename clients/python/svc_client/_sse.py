"""A parser of event streams (HTML standard, 9.2.6): each byte is looked at a bounded number of times, and memory is bounded."""

from __future__ import annotations

from typing import Iterator, NamedTuple

from ._base import InvalidAnswer

_BOM = b"\xef\xbb\xbf"


class RawEvent(NamedTuple):
    name: str
    data: bytes


class EventParser:
    """`limit`: bytes of one event, its field names included."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data = bytearray()
        self._has_data = False
        self._name = b""
        self._size = 0
        self._ends_with_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[RawEvent]:
        """The events that the chunk completes. Raises InvalidAnswer for an event beyond the limit."""
        for piece in chunk.splitlines(keepends=True):
            # \r\n that was cut between two chunks is one end of line.
            if self._ends_with_cr and piece == b"\n":
                self._ends_with_cr = False
                continue
            self._ends_with_cr = False
            text = piece.rstrip(b"\r\n")
            self._count(len(piece))
            self._line += text
            if len(text) == len(piece):
                continue
            self._ends_with_cr = piece.endswith(b"\r")
            line = bytes(self._line)
            self._line.clear()
            if line:
                self._field(line)
            else:
                yield from self._dispatch()

    def _count(self, more: int) -> None:
        self._size += more
        if self._size > self._limit:
            raise InvalidAnswer(f"An event of the stream is larger than {self._limit} bytes.")

    def _field(self, line: bytes) -> None:
        if self._at_start:
            self._at_start = False
            line = line[len(_BOM) :] if line.startswith(_BOM) else line
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"data":
            if self._has_data:
                self._data += b"\n"
            self._has_data = True
            self._data += value
        elif name == b"event":
            self._name = value
        elif name == b"" and not self._has_data and self._name == b"":
            # A comment between two events, as they keep a connection open, belongs to no event.
            self._size = 0

    def _dispatch(self) -> Iterator[RawEvent]:
        self._at_start = False
        name, data, has_data = self._name, bytes(self._data), self._has_data
        self._name, self._has_data, self._size = b"", False, 0
        self._data.clear()
        if has_data:
            yield RawEvent(name.decode("utf-8", "replace") or "message", data)
