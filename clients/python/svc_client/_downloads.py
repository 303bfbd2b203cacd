"""Bytes of a stored file, into memory or into a file. Blocks. What the service says of names never becomes a path."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Iterator, Union

from ._base import ConnectionFailed, InvalidAnswer
from ._http import Exchange

#: A path of the caller's machine.
PathLike = Union[str, "os.PathLike[str]"]


def _pieces(exchange: Exchange, size: int) -> Iterator[bytes]:
    """Raises unless the file is as long as its record says."""
    left = size
    while True:
        piece = exchange.read()
        if not piece:
            break
        left -= len(piece)
        if left < 0:
            raise InvalidAnswer(f"The file is longer than the {size} bytes of its record.")
        yield piece
    if left > 0:
        raise ConnectionFailed("The connection ended before the file was whole.")


def read_bytes(exchange: Exchange, size: int) -> bytes:
    try:
        return b"".join(_pieces(exchange, size))
    finally:
        exchange.close()


def save(exchange: Exchange, size: int, target: PathLike) -> Path:
    """The path has the whole file or what it had before."""
    path = Path(target)
    # A name may have 255 bytes, and a character four of them.
    part = path.with_name(f".{path.name[:32]}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            for piece in _pieces(exchange, size):
                file.write(piece)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        exchange.close()
    return path
