"""Parts of the client that blocks: files, streams, and how tools are called."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Generator, Generic, Iterator, List, Optional

from . import _requests as requests
from ._base import SvcError
from ._downloads import PathLike, read_bytes, save
from ._events import EventReader, Finished, RequestEvent, ResultReader, ResultT, Step, ToolEvent
from ._files import FileInfo
from ._http import Exchange
from ._plans import CallTools, Plan, ToolProgram, Outcome, outcome_of
from ._tools import FAILURES, Pause, failed, invoke, succeeded

if TYPE_CHECKING:
    from ._svc import Svc


@dataclass(frozen=True)
class File(FileInfo):
    """A stored file that can be downloaded."""

    _svc: "Optional[Svc]" = field(default=None, repr=False, compare=False)

    def download(self, *, timeout: Optional[float] = None) -> bytes:
        exchange = self._open(timeout)
        return read_bytes(exchange, self.size)

    def save(self, path: PathLike, *, timeout: Optional[float] = None) -> Path:
        """Into this file of the caller's, which is replaced."""
        exchange = self._open(timeout)
        return save(exchange, self.size, path)

    def _open(self, timeout: Optional[float]) -> Exchange:
        if self._svc is None:
            raise ValueError("a file is downloaded by the client that answered it")
        return self._svc._drive(self._svc._core.download(self, timeout))


class EventStream(Iterator[RequestEvent[File, ResultT]]):
    """
    The events of a run, read while they come: `for event in stream`. The request goes out with the first. `close`, the end of a `with` block
    and garbage collection close the connection; of `Svc.stream` that cancels a run that has not ended.
    """

    def __init__(
        self, svc: "Svc", plan: "Plan[Exchange]", result: "ResultReader[File, ResultT]"
    ) -> None:
        self._svc = svc
        self._result = result
        self._plan: "Optional[Plan[Exchange]]" = plan
        self._exchange: Optional[Exchange] = None
        self._closed = False
        self._reader: "Optional[EventReader[File, ResultT]]" = None
        self._steps: "List[Step[File, ResultT]]" = []

    def __iter__(self) -> "EventStream[ResultT]":
        return self

    def __next__(self) -> "RequestEvent[File, ResultT]":
        if self._plan is not None:
            plan, self._plan = self._plan, None
            opened = self._svc._drive(plan, self._begun)
            self._reader = EventReader(self._svc._core.file, self._result, opened.headers.get("x-request-id"))
        try:
            while not self._steps:
                exchange, reader = self._exchange, self._reader
                if exchange is None or reader is None or reader.ended:
                    raise StopIteration
                self._steps = list(reader.feed(exchange.read()))[::-1]
        except BaseException:
            self.close()
            raise
        step = self._steps.pop()
        if isinstance(step, SvcError):
            self.close()
            raise step
        return step

    def _begun(self, exchange: Exchange) -> None:
        # Another thread may close the stream before its answer begins: one of the two sees what the other has set.
        self._exchange = exchange
        if self._closed:
            exchange.close()

    def close(self) -> None:
        self._closed = True
        self._plan = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close()

    def __enter__(self) -> "EventStream[ResultT]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class ToolCaller:
    """Answers calls one after the other; asynchronous functions of a batch run together, on one loop for the whole program."""

    def __init__(self) -> None:
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def __call__(self, step: CallTools) -> List[Dict[str, Any]]:
        results: List[Any] = []
        for call in step.calls:
            try:
                value = invoke(step.tools, call)
                results.append(value if inspect.isawaitable(value) else succeeded(call, value))
            except FAILURES as error:
                results.append(failed(call, error))
        waiting = [at for at, value in enumerate(results) if inspect.isawaitable(value)]
        if waiting:
            values = self._await([results[at] for at in waiting])
            for at, value in zip(waiting, values):
                call = step.calls[at]
                results[at] = failed(call, value) if isinstance(value, FAILURES) else succeeded(call, value)
        return results

    def _await(self, awaitables: List[Any]) -> List[Any]:
        if self._loop is None:
            _refuse_running_loop(awaitables)
            self._loop = asyncio.new_event_loop()

        async def every() -> List[Any]:
            return list(await asyncio.gather(*awaitables, return_exceptions=True))

        values = self._loop.run_until_complete(every())
        for value in values:
            if isinstance(value, BaseException) and not isinstance(value, FAILURES):
                raise value
        return values

    def close(self) -> None:
        if self._loop is None:
            return
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()

        async def end() -> None:
            await asyncio.gather(*left, return_exceptions=True)

        self._loop.run_until_complete(end())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


def _refuse_running_loop(awaitables: List[Any]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    for awaitable in awaitables:
        if inspect.iscoroutine(awaitable):
            awaitable.close()
    raise RuntimeError("an event loop runs in this thread: use AsyncSvc there")


def tool_events(
    svc: "Svc", program: ToolProgram, timeout: Optional[float]
) -> "Generator[ToolEvent[File], None, None]":
    caller = ToolCaller()
    read: "ResultReader[File, Outcome[File]]" = outcome_of
    ended = False
    try:
        while not ended:
            plan = svc._core.events(requests.streamed(program.request), timeout)
            with EventStream(svc, plan, read) as events:
                for event in events:
                    if not isinstance(event, Finished):
                        yield event
                    elif isinstance(event.result, Pause):
                        pause = event.result
                    else:
                        ended = True
                        yield Finished(event.result)
            if not ended:
                step = program.paused(pause)
                yield from pause.calls
                program.resume(pause, caller(step))
    except BaseException as error:
        if not ended:
            svc._drive(program.give_up(error))
        raise
    finally:
        caller.close()
