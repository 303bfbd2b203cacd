"""Servers that answer as told, right or wrong, on a free port of loopback."""

import json
import socket
import threading
from contextlib import contextmanager


class Connection:
    """One client. `request`: what it sent first, up to the end of a body with a length."""

    def __init__(self, connected):
        self.socket = connected
        self.request = self._read_request()

    def _read_request(self):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.socket.recv(65536)
            if not piece:
                return data
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        missing = (int(lengths[0]) if lengths else 0) - len(body)
        while missing > 0:
            piece = self.socket.recv(65536)
            if not piece:
                break
            missing -= len(piece)
            data += piece
        return data

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def answer(self, status, body, *headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(data)}", *headers, "", ""]
        self.send("\r\n".join(lines).encode() + data)

    def stream(self, *pieces):
        self.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for piece in pieces:
            self.send(piece)

    def wait_for_end(self):
        """Until the client has closed the connection."""
        try:
            while self.socket.recv(65536):
                pass
        except OSError:
            pass


class Server:
    """`answers`: a function for each connection in turn; the last one answers all further ones."""

    def __init__(self, answers):
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = []
        self._sockets = []
        self.requests = []
        self.failures = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self):
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            answer = self._answers[min(len(self._sockets), len(self._answers) - 1)]
            self._sockets.append(connected)
            thread = threading.Thread(target=self._serve, args=(connected, answer), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connected, answer):
        try:
            connection = Connection(connected)
            self.requests.append(connection.request.decode("latin-1"))
            answer(connection)
        except OSError:
            pass  # The client has gone.
        except Exception as error:
            self.failures.append(error)
        finally:
            connected.close()

    def stop(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for connected in self._sockets:
            try:
                connected.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join()


@contextmanager
def serve(*answers):
    server = Server(answers)
    try:
        yield server
    finally:
        server.stop()
    if server.failures:
        raise server.failures[0]


RESULT = {
    "session_id": "s" * 21,
    "stdout": "42\n",
    "stderr": "",
    "files": [],
    "code": 0,
    "signal": None,
    "status": None,
    "message": None,
    "limits": {"run_timeout_ms": 60000, "memory_bytes": 536870912},
    "wall_time": 1.5,
    "cpu_time": 1.2,
    "memory": 1000,
    "language": "python",
    "version": "3.13.5",
    "timings": {"queue_ms": 1, "setup_ms": 1, "run_ms": 1.5, "collect_ms": 0},
}

FILE = {
    "id": "f" * 21,
    "storage_session_id": "s" * 21,
    "name": "plot.png",
    "size": 4,
    "content_type": "image/png",
    "kind": "user",
    "resource_id": "u1",
}


def error(code, **more):
    return {"error": code, "message": f"A sentence about {code}.", "request_id": "req-1", **more}


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
