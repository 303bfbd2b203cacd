"""One issued call: a connection of its own to the relay, which answers when the tool's result arrives.

Guarantees that a call is sent, whole, before `issue` returns, in the order of the calls of all threads, and that its connection stays open until
the answer is there, whatever the program does with the result. Trusts the relay to answer with HTTP/1.1 and either Content-Length or the
end of the connection.
"""

import _socket
import _thread
import os
import sys

from . import tool, values

_order = _thread.RLock()
_open = set()
_latest = _thread._local()
_awaiting = _thread._local()


def _after_fork():
    global _order
    _order = _thread.RLock()


os.register_at_fork(after_in_child=_after_fork)


def running_loop():
    """The event loop that runs in this thread, if any. While asyncio is not imported there is none."""
    asyncio = sys.modules.get("_asyncio")
    return None if asyncio is None else asyncio._get_running_loop()


class awaiting:
    """Within its block, results of this thread can be awaited without an event loop: awaiting one blocks the thread."""

    def __enter__(self):
        _awaiting.now = True

    def __exit__(self, *_):
        _awaiting.now = False


def issue(name, body):
    """Sends a call. Returns its value, or an awaitable result where an event loop runs or `awaiting` is active."""
    _flush()
    call = Call(name, body)
    if getattr(_awaiting, "now", False) or running_loop() is not None:
        from . import result

        result.teach_json()
        return result.Result(call)
    _accept_values_in_asyncio_run()
    _latest.value = value = call.value()
    return value


def _flush():
    """Flushes the streams: what the program wrote before the call is shown with the pause, whole lines or not."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def _accept_values_in_asyncio_run():
    """Makes asyncio.run(tool(...)) in a plain module accept the value. The call was made before there was an event loop in which
    it could be awaited."""
    runners = sys.modules.get("asyncio.runners")
    if runners is None or hasattr(runners.Runner.run, "_svc_plain"):
        return

    def accepting(plain):
        def run(self, main, **options):
            if main is getattr(_latest, "value", run) and not hasattr(main, "send"):
                return main
            return plain(self, main, **options)

        run.__doc__, run.__name__, run._svc_plain = plain.__doc__, plain.__name__, plain
        return run

    loop = sys.modules["asyncio"].BaseEventLoop
    runners.Runner.run = accepting(runners.Runner.run)
    loop.run_until_complete = accepting(loop.run_until_complete)


class Call:
    def __init__(self, name, body):
        self.name = name
        self._lock = _thread.RLock()
        self._received = bytearray()
        self._end = None
        self._answer = None
        self._loop = None
        self._waiters = []
        head = f"POST /tool-call HTTP/1.1\r\nHost: tools\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        with _order:
            self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                self._socket.connect(tool.SOCKET)
            except OSError as error:
                self._socket.close()
                raise tool.ToolExecutionError(f"tools cannot be called: {error.strerror}", name) from None
            try:
                self._socket.sendall(head.encode() + body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before it was read; the answer tells why
            _open.add(self._socket)

    def value(self):
        """Waits for the answer and blocks this thread. Returns the result or raises ToolExecutionError."""
        self._receive(0)
        return self._outcome()

    def wait(self):
        """A generator for `yield from` in a coroutine: waits for the answer without blocking the thread of an event loop."""
        while not self._receive(_socket.MSG_DONTWAIT):
            loop = running_loop()
            if loop is None:
                self._receive(0)
                break
            if self._waiters and self._loop is not loop:
                yield from loop.run_in_executor(None, self._receive, 0)
                continue
            future = loop.create_future()
            if not self._waiters:
                self._loop = loop
                loop.add_reader(self._socket.fileno(), self._wake)
            self._waiters.append(future)
            try:
                yield from future
            finally:
                if future in self._waiters:
                    self._waiters.remove(future)
                    if not self._waiters:
                        loop.remove_reader(self._socket.fileno())
        return self._outcome()

    def _wake(self):
        self._loop.remove_reader(self._socket.fileno())
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)
        if self._answer is not None:
            self._socket.close()

    def _receive(self, flags):
        """Reads what has arrived; with flags 0 waits until everything is there. True when the answer is complete."""
        with self._lock:
            while self._answer is None:
                try:
                    data = self._socket.recv(1 << 18, flags)
                except BlockingIOError:
                    return False
                except ConnectionResetError:
                    data = b""
                self._received += data
                if not data or self._is_complete():
                    self._finish()
            return True

    def _is_complete(self):
        if self._end is None:
            head = self._received.find(b"\r\n\r\n")
            if head < 0:
                return False
            length = self._header(b"content-length")
            self._end = head + 4 + int(length) if length else sys.maxsize
        return len(self._received) >= self._end

    def _header(self, name):
        head = bytes(self._received[: self._received.find(b"\r\n\r\n")])
        for line in head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name:
                return value.strip().decode("latin-1")
        return None

    def _finish(self):
        """Reads the answer: (value, None, None), or (None, message, call id) for a failure."""
        head = self._received.find(b"\r\n\r\n")
        short = self._end not in (None, sys.maxsize) and len(self._received) < self._end
        if head < 0 or short or not self._received.startswith(b"HTTP/1."):
            answer = (None, "the connection was lost before the tool answered", None)
        else:
            status = bytes(self._received[9:12])
            body = bytes(self._received[head + 4 :])
            identifier = self._header(b"x-tool-call-id")
            try:
                if status != b"200":
                    raise ValueError(body.decode("utf-8", "replace") or "the tool failed")
                answer = (values.decode(body), None, identifier)
            except ValueError as error:
                answer = (None, str(error), identifier)
        self._answer = answer
        self._received = None
        _open.discard(self._socket)
        if self._waiters:
            self._loop.call_soon_threadsafe(self._wake)
        else:
            self._socket.close()

    def _outcome(self):
        value, problem, identifier = self._answer
        if problem is not None:
            raise tool.ToolExecutionError(problem, self.name, identifier)
        return value
