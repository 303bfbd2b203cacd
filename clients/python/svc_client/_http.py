"""One request and its answer over a connection of its own. Blocks; another thread may close it. No redirect is followed."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, Mapping, Optional, TypeVar, Union

from ._answers import MAX_ANSWER_BYTES, MAX_ERROR_BYTES, Answer
from ._base import ConnectionFailed, InvalidAnswer, RequestTimeout
from ._form import Form
from ._target import Target
from ._wire import Deadline, Wire

T = TypeVar("T")
VERSION = "0.1.0"
_PIECE = 64 * 1024
_OK: FrozenSet[int] = frozenset({200})


@dataclass(frozen=True)
class Request:
    """`path`: below /v1, as it goes over the wire. `success`: statuses that are no errors. `idle`: seconds for a
    single read of the body. `waits_out`: after `rate_limited` it comes again until it is let in."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Optional[Union[bytes, Form]] = None
    success: FrozenSet[int] = _OK
    idle: Optional[float] = None
    waits_out: bool = False


@dataclass(frozen=True)
class Network:
    """What all requests of a client share. `context`: made at the first use of TLS."""

    target: Target
    headers: Mapping[str, str] = field(repr=False)
    connect_timeout: float
    context: Callable[[], ssl.SSLContext] = field(repr=False)


class Exchange:
    """Open it, read it, close it."""

    def __init__(self, network: Network, request: Request, deadline: Deadline) -> None:
        self._network = network
        self._request = request
        self._deadline = deadline
        self._wire = Wire(deadline)
        self._response: Optional[http.client.HTTPResponse] = None
        self._left: Optional[int] = None
        self.status = 0
        self.headers: Dict[str, str] = {}

    def open(self) -> None:
        """Sends the request and reads the head of the answer. Raises OSError where the file of its form cannot be read."""
        connection = self._connect()
        self._send(connection)
        with self._failures():
            response = connection.getresponse()
        self._wire.idle = self._request.idle
        self._response, self._left = response, None if response.chunked else response.length
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What goes wrong on the connection, as errors of this client."""
        try:
            yield
        except RequestTimeout:
            raise
        except http.client.RemoteDisconnected as error:
            raise ConnectionFailed("The connection was closed without an answer.") from error
        except http.client.HTTPException as error:
            raise InvalidAnswer("The answer is not HTTP.") from error
        except (OSError, ValueError) as error:
            raise self._wire.broken(error) from error

    def _connect(self) -> http.client.HTTPConnection:
        network, target = self._network, self._network.target
        timeout = self._deadline.left(network.connect_timeout)
        proxy = target.proxy
        host, port = (target.host, target.port) if proxy is None else (proxy.host, proxy.port)
        connection: http.client.HTTPConnection
        if target.secure:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=network.context())
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        if target.secure and proxy is not None:
            headers = {} if proxy.authorization is None else {"Proxy-Authorization": proxy.authorization}
            connection.set_tunnel(target.host, target.port, headers)
        try:
            connection.connect()
        except socket.timeout as error:
            self._deadline.left()
            raise RequestTimeout(f"No connection within {network.connect_timeout} s.") from error
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise ConnectionFailed(f"No connection to {target.host_header}: {error}.") from error
        self._wire.attach(connection.sock)
        connection.sock = self._wire
        return connection

    def _send(self, connection: http.client.HTTPConnection) -> None:
        body = self._request.body
        blocks: Iterable[bytes] = body.blocks() if isinstance(body, Form) else () if body is None else (body,)
        if not self._sent(self._send_head, connection):
            return
        # A file is read here, where its own faults are not taken for those of the connection.
        for block in blocks:
            if not self._sent(connection.send, block):
                return

    def _sent(self, send: Callable[[T], None], what: T) -> bool:
        """False: no more is taken. The service may refuse a body before it has come whole; its answer says why."""
        with self._failures():
            try:
                send(what)
            except ConnectionError:
                return False
        return True

    def _send_head(self, connection: http.client.HTTPConnection) -> None:
        request, target = self._request, self._network.target
        path = f"{target.prefix}/v1{request.path}"
        if target.proxy is not None and not target.secure:
            path = f"http://{target.host_header}{path}"
        connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._heads().items():
            connection.putheader(name, value)
        if request.body is not None:
            size = request.body.length if isinstance(request.body, Form) else len(request.body)
            connection.putheader("Content-Length", str(size))
        connection.endheaders()

    def _heads(self) -> Dict[str, str]:
        proxy = self._network.target.proxy
        heads = {"Host": self._network.target.host_header, "Connection": "close", "Accept-Encoding": "identity"}
        if proxy is not None and proxy.authorization is not None and not self._network.target.secure:
            heads["Proxy-Authorization"] = proxy.authorization
        return {**heads, "User-Agent": f"svc-client-python/{VERSION}", **self._network.headers, **self._request.headers}

    def read(self) -> bytes:
        """The next piece of the body; empty at its end. Raises ConnectionFailed when it is cut off."""
        response, size = self._response, _PIECE if self._left is None else min(_PIECE, self._left)
        if response is None or size == 0:
            return b""
        try:
            piece = response.read1(size)
        except RequestTimeout:
            raise
        except (http.client.HTTPException, OSError, ValueError) as error:
            raise self._wire.broken(error) from error
        if self._left is not None:
            if not piece:
                raise ConnectionFailed("The connection ended before the answer was whole.")
            self._left -= len(piece)
        return piece

    def answer(self) -> Answer:
        """With the whole body, which is bounded."""
        limit = MAX_ANSWER_BYTES if self.status in self._request.success else MAX_ERROR_BYTES
        body = bytearray()
        while True:
            piece = self.read()
            if not piece:
                return Answer(self.status, self.headers, bytes(body))
            body += piece
            if len(body) > limit:
                raise InvalidAnswer(f"The answer is larger than {limit} bytes.", status=self.status)

    def close(self) -> None:
        """By any thread."""
        self._wire.end()
