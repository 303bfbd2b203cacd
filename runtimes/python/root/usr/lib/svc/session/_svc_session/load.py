"""Reads the file of variables into a namespace."""

import io
import sys
from _pickle import Unpickler, loads
from struct import pack

from . import figures, state
from .clock import Clock, Deadline
from .imports import own

HEAD = b"\x80\x05"
SECONDS = 20  # twice what saving may take
# What pickles of functions and classes name.
OWN = ("cloudpickle", f"{__package__}.")


class Damaged(Exception):
    pass


class Loader(Unpickler):
    """`known`: what an earlier loader has loaded (_after_failure)."""

    known = {}

    def find_class(self, module, name):
        if module.startswith(OWN):
            own(f"{__package__}.by_value")
        return super().find_class(module, name)

    def persistent_load(self, index):
        return self.known[index]


class Source:
    """What loaders read: a file, or temporarily something else."""

    def __init__(self, file):
        self.file = file

    def read(self, size):
        return self.file.read(size)

    def readinto(self, buffer):
        return self.file.readinto(buffer)

    def readline(self):
        return self.file.readline()


def load(file, namespace):
    """Returns what could not be loaded: [(name, reason)]. `file`: as FileIO."""
    dropped = []
    clock = Clock("loading", SECONDS)
    try:
        with clock:
            total, variables = _index_of(file)
        _load_all(Source(file), total, variables, namespace, dropped, clock)
    except BaseException as error:
        reason = str(error) if isinstance(error, Damaged) else f"the saved variables are damaged: {_reason_of(error, clock)}"
        dropped.append((state.ALL, reason[: state.CHARACTERS]))
    finally:
        clock.stop()
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


def _load_all(source, total, variables, namespace, dropped, clock):
    file = source.file
    loader = Loader(source)
    for at, (name, offset, _index) in enumerate(variables):
        file.seek(offset)
        try:
            with clock:
                (value,) = loader.load()
                if name == state.FIGURES:
                    figures.reopen(value)
            if name != state.FIGURES:
                namespace[name] = value
        except Deadline as error:
            dropped += [(later, str(error)) for later, *_ in variables[at:]]
            return
        except BaseException as error:
            dropped.append((name, _reason_of(error, clock)))
            following = variables[at + 1][2] if at + 1 < len(variables) else total
            loader = _after_failure(source, loader, following, total)
            source.file = file


def _reason_of(error, clock):
    """Has a time limit, because the program's own code may make the texts of its errors."""
    try:
        with clock:
            reason = state.reason_of(error)
    except BaseException as deadline:
        return state.reason_of(deadline)
    if reason.startswith("Memo value not found"):
        return "it shares a value with a variable that could not be loaded"
    return reason


def _after_failure(source, old, following, total):
    """A loader that has what `old` has loaded, and nothing of what it has not: a variable that needs the missing values fails,
    too.

    A memo numbers its values by their count. So it is filled up to `following` with entries that no pickle refers to: their
    numbers are above `total`.
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
