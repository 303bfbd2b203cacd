"""The form of an upload (RFC 7578), written while it is sent: a file is never held in memory."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Iterator, List, Mapping, Tuple, Union
from urllib.parse import quote

_TYPE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,254}\Z")
_BLOCK = 256 * 1024
Source = Union[bytes, Path]


class Form:
    """Fields, then one file. Its length is known before it is sent; a file that changes meanwhile raises OSError."""

    def __init__(self, fields: Mapping[str, str], name: str, source: Source, content_type: str) -> None:
        if _TYPE.match(content_type) is None:
            raise ValueError("content_type must be like text/csv")
        boundary = f"svc-{secrets.token_hex(16)}"
        self.content_type = f"multipart/form-data; boundary={boundary}"
        parts = [_part(boundary, f'name="{key}"', []) + value.encode("utf-8") + b"\r\n" for key, value in fields.items()]
        heads = [f"Content-Type: {content_type}"]
        parts.append(_part(boundary, f'name="file"; {_file_name(name)}', heads))
        self._head = b"".join(parts)
        self._tail = f"\r\n--{boundary}--\r\n".encode("ascii")
        self._source = source
        self._size = len(source) if isinstance(source, bytes) else os.stat(source).st_size
        self.length = len(self._head) + self._size + len(self._tail)

    def blocks(self) -> Iterator[bytes]:
        """May be called again for a repeat."""
        yield self._head
        if isinstance(self._source, bytes):
            yield self._source
        else:
            yield from _blocks_of(self._source, self._size)
        yield self._tail


def _part(boundary: str, disposition: str, heads: List[str]) -> bytes:
    lines = [f"--{boundary}", f"Content-Disposition: form-data; {disposition}", *heads, "", ""]
    return "\r\n".join(lines).encode("ascii")


def _file_name(name: str) -> str:
    """Every character of a name survives, quotes too."""
    return f"filename*=UTF-8''{quote(name, safe='')}"


def _blocks_of(path: Path, size: int) -> Iterator[bytes]:
    left = size
    with open(path, "rb") as file:
        while left > 0:
            block = file.read(min(_BLOCK, left))
            if not block:
                raise OSError(f"{path} became shorter while it was uploaded")
            left -= len(block)
            yield block
        if file.read(1):
            raise OSError(f"{path} became longer while it was uploaded")


def checked_upload(source: "Union[str, os.PathLike[str], bytes]", name: Union[str, None]) -> Tuple[Source, str]:
    """What is uploaded and under which name. A path is named by its last part; bytes need a name."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        if name is None:
            raise ValueError("bytes need a name: upload(data, name='data.csv')")
        return bytes(source), name
    path = Path(source)
    return path, path.name if name is None else name
