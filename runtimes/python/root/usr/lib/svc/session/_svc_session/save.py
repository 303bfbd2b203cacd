"""Writes the file of variables.

A variable that cannot be pickled, or that does not fit, is rolled back: its bytes in the file and its entries in the memo.
Large buffers go from the value to the file, without a copy.
"""

import os
import sys
from _pickle import dumps

from . import state
from .clock import Clock, Deadline
from .imports import own
from .plain import PROTOCOL, NotPlain, PlainPickler

SECONDS = 10


class Output:
    """What picklers write to: the file, or temporarily only memory."""

    def __init__(self, fd):
        self.fd = fd
        self.memory = None

    def write(self, data):
        if self.memory is not None:
            self.memory += data
            return
        view = memoryview(data)
        while len(view) > 0:
            view = view[os.write(self.fd, view) :]


def write_index(output, start, total, variables):
    output.write(dumps((total, variables), PROTOCOL) + start.to_bytes(state.OFFSET_BYTES, "big"))


class Writer:
    """`saved`: the index; `dropped`: [(name, reason)]. `program`: its path and its namespace."""

    def __init__(self, output, program, clock):
        self.saved = []
        self.dropped = []
        self._output = output
        self._pickler = PlainPickler(self._output)
        self._program = program
        self._clock = clock

    @property
    def modules(self):
        return self._pickler.modules

    def add(self, name, value):
        try:
            self._clock.check()
        except Deadline as error:
            self.dropped.append((name, str(error)))
            return
        holder = [value]
        start = os.lseek(self._output.fd, 0, os.SEEK_CUR)
        try:
            try:
                self._dump(holder)
            except NotPlain:
                self._take_back(holder, start)
                self._use_other_pickler()
                self._dump(holder)
        except BaseException as error:
            self.dropped.append((name, self._reason_of(error)))
            self._take_back(holder, start)
        else:
            self.saved.append((name, start, self._index_of(holder)))

    def _reason_of(self, error):
        """Has a time limit, because the program's own code may make the texts of its errors."""
        try:
            with self._clock:
                return state.reason_of(error)
        except BaseException as deadline:
            return state.reason_of(deadline)

    def finish(self):
        """Writes the index."""
        end = []
        self._written_to_memory(end)
        start = os.lseek(self._output.fd, 0, os.SEEK_CUR)
        write_index(self._output, start, self._index_of(end), self.saved)

    def _dump(self, holder):
        with self._clock:
            self._pickler.dump(holder)

    def _use_other_pickler(self):
        other = own(f"{__package__}.by_value").ByValuePickler(self._output, self._program)
        other.memo = self._pickler.memo
        other.modules = self._pickler.modules
        self._pickler = other

    def _take_back(self, holder, start):
        """Removes all memo entries from the holder on: it was the first entry of its variable."""
        os.ftruncate(self._output.fd, start)
        os.lseek(self._output.fd, start, os.SEEK_SET)
        memo = self._pickler.memo.copy()
        if id(holder) in memo:
            first = memo[id(holder)][0]
            self._pickler.memo = {key: entry for key, entry in memo.items() if entry[0] < first}

    def _written_to_memory(self, value):
        self._output.memory = bytearray()
        try:
            self._pickler.dump(value)
            return self._output.memory
        finally:
            self._output.memory = None

    def _index_of(self, value):
        """The memo number of a list that is in the memo. Pickled again, the list is only that number: PROTO, perhaps FRAME, BINGET
        or LONG_BINGET, STOP."""
        written = self._written_to_memory(value)[2:]
        if written[:1] == b"\x95":
            written = written[9:]
        return int.from_bytes(written[1:-1], "little")


def save(program, variables, lost):
    """Writes the variables of a program, [(name, value)], and replaces the file that the program began with. `lost`: [(name,
    reason)] of the variables that were not loaded. Returns False when not even a list of dropped variables could be written."""
    names = [name for name, _ in variables] + [name for name, _ in lost]
    folder = os.path.dirname(program[0])
    new = os.path.join(folder, state.NEW)
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _write(fd, state.header_size(names), program, variables, lost)
        finally:
            os.close(fd)
        os.rename(new, os.path.join(folder, state.FILE))
    except BaseException:
        _remove(new)
        return False
    _remove(os.path.join(folder, state.LAST))
    return True


def _write(fd, size, program, variables, lost):
    # Reserves room for the header, which is written last and then cannot fail, and writes an empty index.
    output = Output(fd)
    output.write(b" " * size)
    write_index(output, size, 0, [])
    least = os.lseek(fd, 0, os.SEEK_CUR)
    clock = Clock("saving", SECONDS)
    writer = Writer(output, program, clock)
    try:
        for name, value in variables:
            writer.add(name, value)
        writer.finish()
        saved, modules, dropped = writer.saved, writer.modules, writer.dropped
    except BaseException as error:
        os.ftruncate(fd, least)
        reason = state.reason_of(error)
        saved, modules, dropped = [], [], [(name, reason) for name, _ in variables]
    finally:
        clock.stop()
    os.pwrite(fd, state.header_of([name for name, *_ in saved], _beyond_standard_library(modules), [*lost, *dropped], size), 0)


def _beyond_standard_library(modules):
    tops = {name.partition(".")[0] for name in modules if isinstance(name, str)}
    return {top for top in tops if top in sys.modules} - sys.stdlib_module_names - {"__main__", "cloudpickle", __package__}


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass
