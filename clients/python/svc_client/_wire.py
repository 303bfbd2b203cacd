"""A socket whose operations all end by one deadline, for http.client, which itself knows only the time of a single read."""

from __future__ import annotations

import io
import math
import socket
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from ._base import ConnectionFailed, RequestTimeout


class Deadline:
    """`seconds`: from now; None and infinity: never."""

    def __init__(self, seconds: Optional[float]) -> None:
        self._seconds = seconds
        self._end = None if seconds is None or seconds == math.inf else time.monotonic() + seconds

    def left(self, at_most: Optional[float] = None) -> Optional[float]:
        """Seconds for the next operation. Raises RequestTimeout when none are left."""
        if self._end is None:
            return at_most
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left if at_most is None else min(left, at_most)

    def passed(self) -> RequestTimeout:
        return RequestTimeout(f"The call did not end within {self._seconds} s.")


class Wire:
    """
    Stands in for the socket in http.client. `idle`: seconds that a single read may take. One thread uses it; any thread may `end` it, and
    the operation of the first then ends at once with ConnectionFailed.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self.idle: Optional[float] = None
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self._in_use = False
        self._ended = False

    def attach(self, connected: socket.socket) -> None:
        with self._lock:
            self._socket = connected
            if self._ended:
                connected.close()
                raise self.broken()

    def end(self) -> None:
        """
        Closes the connection. A thread that uses it is woken up and closes it: its number must not go to another file while it reads.
        """
        with self._lock:
            self._ended = True
            current = self._socket
            if current is None:
                return
            try:
                # Not SSLSocket's, which takes its state away from the thread that reads.
                socket.socket.shutdown(current, socket.SHUT_RDWR)
            except OSError:
                pass
            if not self._in_use:
                current.close()

    def broken(self, error: Optional[Exception] = None) -> ConnectionFailed:
        if self._ended:
            return ConnectionFailed("The connection was closed by the caller.")
        return ConnectionFailed(f"The connection broke: {error}.")

    def close(self) -> None:
        """http.client closes its socket when the answer is the last one, while the answer is still read."""

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Reader(self), 64 * 1024)

    def sendall(self, data: Any) -> None:
        with self._use() as connected:
            connected.settimeout(self._deadline.left())
            try:
                connected.sendall(data)
            except socket.timeout as error:
                raise self._deadline.passed() from error

    def receive(self, buffer: Any) -> int:
        with self._use() as connected:
            connected.settimeout(self._deadline.left(self.idle))
            try:
                count = connected.recv_into(buffer)
            except socket.timeout as error:
                self._deadline.left()
                raise RequestTimeout(f"Nothing came for {self.idle} s.") from error
            except OSError as error:
                raise self.broken(error) from error
            if self._ended:
                raise self.broken()
            return count

    @contextmanager
    def _use(self) -> Iterator[socket.socket]:
        with self._lock:
            connected = self._socket
            if connected is None or self._ended:
                raise self.broken()
            self._in_use = True
        try:
            yield connected
        finally:
            with self._lock:
                self._in_use = False
                if self._ended:
                    connected.close()


class _Reader(io.RawIOBase):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._wire.receive(buffer)
