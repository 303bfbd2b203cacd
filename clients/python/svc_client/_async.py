"""Parts of the asynchronous client: threads that a cancelled task gives up, files, and streams."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, AsyncGenerator, AsyncIterator, Callable, Dict, List, Optional, TypeVar, Union

from . import _requests as requests
from ._base import SvcError
from ._downloads import PathLike, read_bytes, save
from ._events import EventReader, Finished, RequestEvent, ResultReader, ResultT, Step, ToolEvent
from ._files import FileInfo
from ._http import Exchange
from ._plans import CallTools, Plan, ToolProgram, Outcome, outcome_of
from ._tools import FAILURES, Pause, Tool, ToolCall, failed, invoke, succeeded

if TYPE_CHECKING:
    from ._async_svc import AsyncSvc

T = TypeVar("T")


async def in_thread(work: Callable[[], T], abort: Callable[[], None]) -> T:
    """
    Runs `work` in a thread of its own. When the task is cancelled, `abort` makes the work end soon, and nobody waits for it. Not a pool: work
    that waits for an answer must never keep other work waiting.
    """
    loop = asyncio.get_running_loop()
    done: "asyncio.Future[T]" = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, error: Optional[BaseException]) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def body() -> None:
        value: Any = None
        failure: Optional[BaseException] = None
        try:
            value = context.run(work)
        except StopIteration as error:
            failure = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(tell, value, failure)
        except RuntimeError:
            pass  # The loop is closed: the task was cancelled.

    threading.Thread(target=body, name="svc-client", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        abort()
        raise


@dataclass(frozen=True)
class AsyncFile(FileInfo):
    """A stored file that can be downloaded."""

    _svc: "Optional[AsyncSvc]" = field(default=None, repr=False, compare=False)

    async def download(self, *, timeout: Optional[float] = None) -> bytes:
        exchange = await self._open(timeout)
        return await in_thread(lambda: read_bytes(exchange, self.size), exchange.close)

    async def save(self, path: PathLike, *, timeout: Optional[float] = None) -> Path:
        """Into this file of the caller's, which is replaced."""
        exchange = await self._open(timeout)
        return await in_thread(lambda: save(exchange, self.size, path), exchange.close)

    async def _open(self, timeout: Optional[float]) -> Exchange:
        if self._svc is None:
            raise ValueError("a file is downloaded by the client that answered it")
        return await self._svc._drive(self._svc._core.download(self, timeout))


class AsyncEventStream(AsyncIterator[RequestEvent[AsyncFile, ResultT]]):
    """
    The events of a run, read while they come: `async for event in stream`. The request goes out with the first. `aclose`, the end of an
    `async with` block, a cancelled task and garbage collection close the connection; of `AsyncSvc.stream` that cancels a run that has not ended.
    """

    def __init__(
        self, svc: "AsyncSvc", plan: "Plan[Exchange]", result: "ResultReader[AsyncFile, ResultT]"
    ) -> None:
        self._svc = svc
        self._result = result
        self._plan: "Optional[Plan[Exchange]]" = plan
        self._exchange: Optional[Exchange] = None
        self._closed = False
        self._reader: "Optional[EventReader[AsyncFile, ResultT]]" = None
        self._steps: "List[Step[AsyncFile, ResultT]]" = []

    def __aiter__(self) -> "AsyncEventStream[ResultT]":
        return self

    async def __anext__(self) -> "RequestEvent[AsyncFile, ResultT]":
        if self._plan is not None:
            plan, self._plan = self._plan, None
            opened = await self._svc._drive(plan, self._begun)
            self._reader = EventReader(self._svc._core.file, self._result, opened.headers.get("x-request-id"))
        try:
            while not self._steps:
                exchange, reader = self._exchange, self._reader
                if exchange is None or reader is None or reader.ended:
                    raise StopAsyncIteration
                piece = await in_thread(exchange.read, exchange.close)
                self._steps = list(reader.feed(piece))[::-1]
        except BaseException:
            self._close()
            raise
        step = self._steps.pop()
        if isinstance(step, SvcError):
            self._close()
            raise step
        return step

    def _begun(self, exchange: Exchange) -> None:
        # Another task may close the stream before its answer begins.
        self._exchange = exchange
        if self._closed:
            exchange.close()

    def _close(self) -> None:
        self._closed = True
        self._plan = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close()

    async def aclose(self) -> None:
        self._close()

    async def __aenter__(self) -> "AsyncEventStream[ResultT]":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    def __del__(self) -> None:
        self._close()


async def tool_events(
    svc: "AsyncSvc", program: ToolProgram, timeout: Optional[float]
) -> "AsyncGenerator[ToolEvent[AsyncFile], None]":
    read: "ResultReader[AsyncFile, Outcome[AsyncFile]]" = outcome_of
    ended = False
    try:
        while not ended:
            plan = svc._core.events(requests.streamed(program.request), timeout)
            async with AsyncEventStream(svc, plan, read) as events:
                async for event in events:
                    if not isinstance(event, Finished):
                        yield event
                    elif isinstance(event.result, Pause):
                        pause = event.result
                    else:
                        ended = True
                        yield Finished(event.result)
            if not ended:
                step = program.paused(pause)
                for call in pause.calls:
                    yield call
                program.resume(pause, await call_tools(step))
    except BaseException as error:
        if not ended:
            await svc._drive(program.give_up(error))
        raise


async def call_tools(step: CallTools) -> List[Dict[str, Any]]:
    """All calls of the batch together: asynchronous functions on the loop, others in threads."""
    # A task that is cancelled here cancels all of them, and is told so when they have ended.
    calls = (_call(step.tools, call) for call in step.calls)
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [_result(call, result) for call, result in zip(step.calls, results)]


def _result(call: ToolCall, result: Union[Dict[str, Any], BaseException]) -> Dict[str, Any]:
    if not isinstance(result, BaseException):
        return result
    if isinstance(result, FAILURES):
        return failed(call, result)
    raise result


async def _call(tools: "Any", call: ToolCall) -> Dict[str, Any]:
    tool: Optional[Tool] = tools.get(call.name)
    if tool is None or _is_async(tool.function):
        value = invoke(tools, call)
    else:
        value = await in_thread(lambda: invoke(tools, call), lambda: None)
    if inspect.isawaitable(value):
        value = await value
    return succeeded(call, value)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)
    )
