"""Reads the file of variables into a namespace."""

import io
import sys
from _pickle import Unpickler, loads
from struct import pack

from . import state

HEAD = b"\x80\x05"


class Damaged(Exception):
    pass


class Loader(Unpickler):
    """`known`: what an earlier loader has loaded (_after_failure)."""

    known = {}

    def persistent_load(self, index):
        return self.known[index]


class Source:
    """What loaders read: a file, or for a moment something else."""

    def __init__(self, file):
        self.file = file

    def read(self, size):
        return self.file.read(size)

    def readinto(self, buffer):
        return self.file.readinto(buffer)

    def readline(self):
        return self.file.readline()


def load(file, namespace):
    """Gives what could not be loaded: [(name, reason)]. `file`: as FileIO."""
    dropped = []
    try:
        total, variables = _index_of(file)
        _load_all(Source(file), total, variables, namespace, dropped)
    except BaseException as error:
        reason = str(error) if isinstance(error, Damaged) else f"the saved variables are damaged: {state.reason_of(error)}"
        dropped.append((state.ALL, reason[: state.CHARACTERS]))
    return dropped


def _index_of(file):
    if file.read(len(state.BEGINNING)) != state.BEGINNING:
        raise Damaged("the saved variables are damaged: wrong beginning")
    end = file.seek(-state.OFFSET_BYTES, io.SEEK_END)
    at = int.from_bytes(file.read(state.OFFSET_BYTES), "big")
    if at >= end:
        raise Damaged("the saved variables are damaged: wrong end")
    file.seek(at)
    total, variables = loads(file.read(end - at))
    return int(total), [(str(name), int(offset), int(index)) for name, offset, index in variables]


def _load_all(source, total, variables, namespace, dropped):
    file = source.file
    loader = Loader(source)
    for at, (name, offset, _index) in enumerate(variables):
        file.seek(offset)
        try:
            (value,) = loader.load()
            if name == state.FIGURES:
                from . import figures

                figures.reopen(value)
            else:
                namespace[name] = value
        except BaseException as error:
            dropped.append((name, _reason_of(error)))
            following = variables[at + 1][2] if at + 1 < len(variables) else total
            loader = _after_failure(source, loader, following, total)
            source.file = file


def _reason_of(error):
    reason = state.reason_of(error)
    if reason.startswith("Memo value not found"):
        return "it shares a value with a variable that could not be loaded"
    return reason


def _after_failure(source, old, following, total):
    """A loader that knows what `old` has loaded, and nothing of what it has not: a variable that needs that fails, too.

    A memo numbers values by how many it has, so it is filled up to `following` with entries that no pickle asks for: above `total`.
    """
    loader = Loader(source)
    loader.known = known = old.memo.copy()
    unused = max(total, max(known, default=0)) + 1
    words = [HEAD]
    for index in known:
        words.append(b"J" + pack("<i", index) + b"Qr" + pack("<I", index) + b"0")
    for index in range(unused, unused + following - len(known)):
        words.append(b"Nr" + pack("<I", index) + b"0")
    words.append(b"N.")
    source.file = io.BytesIO(b"".join(words))
    loader.load()
    return loader
