"""The events of a run that is watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, ClassVar, Generic, Iterator, Optional, TypeVar, Union

from ._answers import MAX_ANSWER_BYTES, error_from_body
from ._base import ConnectionFailed, SvcError
from ._results import FileReader, FileT, Result, ToolResult
from ._shape import Fields, parse_object
from ._sse import EventParser, RawEvent
from ._tools import ToolCall

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Started:
    """The program runs."""

    session_id: str
    language: str
    version: str
    event: ClassVar[str] = "started"


@dataclass(frozen=True)
class Stdout:
    text: str
    event: ClassVar[str] = "stdout"


@dataclass(frozen=True)
class Stderr:
    text: str
    event: ClassVar[str] = "stderr"


@dataclass(frozen=True)
class FileStored(Generic[FileT]):
    """A new or changed file; it can be downloaded now."""

    file: FileT
    event: ClassVar[str] = "file"


@dataclass(frozen=True)
class Finished(Generic[ResultT]):
    """The last event. `result` holds all output again."""

    result: ResultT
    event: ClassVar[str] = "result"


#: What one request with a stream as its answer tells.
RequestEvent = Union[Started, Stdout, Stderr, FileStored[FileT], Finished[ResultT]]
Event = RequestEvent[FileT, Result[FileT]]
#: Of a program with tools: `Started` comes at its begin and after each pause.
ToolEvent = Union[ToolCall, RequestEvent[FileT, ToolResult[FileT]]]
#: A step of a stream: an event, or the error that ends it.
Step = Union[RequestEvent[FileT, ResultT], SvcError]
ResultReader = Callable[[Fields, FileReader[FileT], Optional[str]], ResultT]


class EventReader(Generic[FileT, ResultT]):
    """
    Reads the bytes of a stream. `result`: reads the last event. Kinds of events that it does not know are skipped. `limit`: bytes of one
    event.
    """

    def __init__(
        self,
        file: FileReader[FileT],
        result: "ResultReader[FileT, ResultT]",
        request_id: Optional[str] = None,
        limit: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._parser = EventParser(limit)
        self._file = file
        self._result = result
        self._request_id = request_id
        #: Whether the last event came.
        self.ended = False

    def feed(self, chunk: bytes) -> "Iterator[Step[FileT, ResultT]]":
        """What the chunk completes, to the end of the stream; no bytes: the connection has ended."""
        if not chunk and not self.ended:
            self.ended = True
            yield ConnectionFailed("The stream ended before its result.", request_id=self._request_id)
        try:
            for raw in self._parser.feed(chunk):
                if self.ended:
                    return
                step = self._step(raw)
                if step is not None:
                    self.ended = isinstance(step, (Finished, SvcError))
                    yield step
        except SvcError as error:
            self.ended = True
            yield error

    def _step(self, raw: RawEvent) -> "Optional[Step[FileT, ResultT]]":
        if raw.name not in ("started", "stdout", "stderr", "file", "result", "error"):
            return None
        body = parse_object(raw.data)
        data = Fields(body, raw.name)
        if raw.name == "started":
            return Started(data.text("session_id"), data.text("language"), data.text("version"))
        if raw.name == "stdout":
            return Stdout(data.text("text"))
        if raw.name == "stderr":
            return Stderr(data.text("text"))
        if raw.name == "file":
            return FileStored(self._file(data))
        if raw.name == "result":
            return Finished(self._result(data, self._file, self._request_id))
        return error_from_body(body)
