"""
What each call does, step by step, without doing it: generators that yield requests, waits and tool calls, and are sent what came of them.
The synchronous and the asynchronous client perform the same plans, so they differ in nothing else.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from . import _requests as requests
from ._answers import Answer, error_of
from ._base import InvalidAnswer, SvcError
from ._http import Exchange, Request
from ._records import Job
from ._results import FileReader, FileT, ToolResult, tool_result_of
from ._retry import RetryPolicy
from ._shape import Fields
from ._tools import Pause, Tool, ToolCall, definitions, pause_of
from ._wire import Deadline

T = TypeVar("T")
#: How a round of a program with tools ends.
Outcome = Union[Pause, ToolResult[FileT]]
#: Rounds of a program with tools; the service allows 200 calls unless its operator changes that.
MAX_ROUNDS = 10_000
#: Seconds for telling the service that nobody waits for a paused program any more.
CANCEL_SECONDS = 5.0
#: Of one request; a longer wait for a job is several.
WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Send:
    """Answered with the whole Answer; with `keep_open`, with the Exchange when it is a success and its content type begins so."""

    request: Request
    deadline: Deadline
    keep_open: Optional[str] = None


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class CallTools:
    """Answered with the results in the order of the calls."""

    tools: Mapping[str, Tool]
    calls: Tuple[ToolCall, ...]


Step = Union[Send, Sleep, CallTools]
Plan = Generator[Step, Any, T]


def ignore(_: Exchange) -> None:
    """For a caller that does not want to know the exchange."""


def perform(effect: Send, exchange: Exchange) -> Union[Answer, Exchange]:
    """Blocks. The exchange is closed unless it is what this answers."""
    kept = False
    try:
        exchange.open()
        wanted = effect.keep_open
        kind = exchange.headers.get("content-type", "").lower()
        if wanted is not None and exchange.status in effect.request.success and kind.startswith(wanted):
            kept = True
            return exchange
        return exchange.answer()
    finally:
        if not kept:
            exchange.close()


def attempts(send: Send, policy: RetryPolicy) -> "Plan[Union[Answer, Exchange]]":
    """Sends until the answer is a success; repeats what is safe to repeat. Raises SvcError."""
    repeats = 0
    while True:
        got: Union[Answer, Exchange] = yield send
        if isinstance(got, Exchange) or got.status in send.request.success:
            return got
        error = error_of(got)
        waits_out = send.request.waits_out
        delay = policy.delay(error, repeats, waits_out)
        left = send.deadline.left()
        if delay is None or (left is not None and delay >= left):
            raise error
        yield Sleep(delay)
        if not policy.is_waited_out(error, waits_out):
            repeats += 1


def ask(
    request: Request,
    timeout: Optional[float],
    policy: RetryPolicy,
    read: Callable[[Fields, Answer], T],
) -> "Plan[T]":
    """One request with a JSON answer. Empty bodies of 202 and 204 are read as an empty object."""
    got = yield from attempts(Send(request, Deadline(timeout)), policy)
    if not isinstance(got, Answer):
        raise TypeError("the answer was to be read")
    body = got.json() if got.body else {}
    try:
        return read(Fields(body), got)
    except InvalidAnswer as error:
        raise InvalidAnswer(error.message, status=got.status, request_id=got.request_id) from error


def wait_for_job(
    job_id: str,
    timeout: float,
    late: Optional[float],
    policy: RetryPolicy,
    read: "Callable[[Fields, Answer], Job[FileT]]",
) -> "Plan[Job[FileT]]":
    """Asks until the job is over. Seconds: `timeout` for all of it; `late`: an answer may come so long after it should."""
    deadline = Deadline(timeout)
    while True:
        seconds = deadline.left(WAIT_SECONDS) or WAIT_SECONDS
        request = requests.job_wait(job_id, int(seconds * 1000))
        most = None if late is None else seconds + late
        job = yield from ask(request, deadline.left(most), policy, read)
        if job.ended:
            return job


def open_stream(
    request: Request, timeout: Optional[float], policy: RetryPolicy, content_type: str
) -> "Plan[Exchange]":
    """An exchange whose body is still to be read. `content_type`: how it must begin."""
    got = yield from attempts(Send(request, Deadline(timeout), content_type), policy)
    if isinstance(got, Exchange):
        return got
    raise InvalidAnswer(
        f"The answer is not of the type {content_type}.", status=got.status, request_id=got.request_id
    )


class ToolProgram:
    """A program with tools, from its start through its pauses. `request`: what is sent next."""

    def __init__(
        self, fields: Dict[str, Any], run_timeout_ms: Optional[int], tools: Mapping[str, Tool]
    ) -> None:
        self._label = f"svc-client-{secrets.token_hex(16)}"
        self._tools = tools
        self._pauses = 0
        self.request = requests.start_tools(
            {**fields, "tools": definitions(tools)}, run_timeout_ms, self._label
        )

    def paused(self, pause: Pause) -> CallTools:
        self._pauses += 1
        if self._pauses > MAX_ROUNDS:
            raise InvalidAnswer(f"The program did not end within {MAX_ROUNDS} rounds.")
        return CallTools(self._tools, pause.calls)

    def resume(self, pause: Pause, results: Sequence[Mapping[str, Any]]) -> None:
        self.request = requests.resume_tools(pause.token, results)

    def give_up(self, error: BaseException) -> "Plan[None]":
        """
        Cancels the program, which would wait for results otherwise, unless its start was refused; one that was given up may have been
        answered meanwhile. Never raises for the service: the program's time ends it anyway.
        """
        if self._pauses == 0 and _is_refusal(error):
            return
        try:
            yield Send(requests.cancel_tools(self._label), Deadline(CANCEL_SECONDS))
        except SvcError:
            pass


def outcome_of(
    answer: Fields, file: "FileReader[FileT]", request_id: Optional[str]
) -> "Outcome[FileT]":
    if answer.text("status") == "tool_call_required":
        return pause_of(answer)
    return tool_result_of(answer, file, request_id)


def run_tools(
    program: ToolProgram, timeout: Optional[float], policy: RetryPolicy, file: "FileReader[FileT]"
) -> "Plan[ToolResult[FileT]]":
    """
    Answers the calls of a program until it ends. `timeout`: for each request. Whatever ends this before the program's end cancels the
    program.
    """

    def read(answer: Fields, got: Answer) -> "Outcome[FileT]":
        return outcome_of(answer, file, got.request_id)

    try:
        while True:
            ended = yield from ask(program.request, timeout, policy, read)
            if not isinstance(ended, Pause):
                return ended
            results: List[Dict[str, Any]] = yield program.paused(ended)
            program.resume(ended, results)
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from program.give_up(error)
        raise


def _is_refusal(error: BaseException) -> bool:
    return isinstance(error, SvcError) and error.status is not None and not isinstance(error, InvalidAnswer)
