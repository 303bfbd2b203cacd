"""The client that blocks."""

from __future__ import annotations

import math
import ssl
import time
from typing import Any, Callable, Dict, Generator, Mapping, Optional, Sequence, Tuple, Union

from . import _requests as requests
from ._core import DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT, DEFAULT_URL, Core
from ._downloads import PathLike
from ._events import ToolEvent
from ._files import InputFile, output_fields
from ._http import Exchange
from ._plans import Plan, Send, Sleep, Step, T, ToolProgram, ignore, perform
from ._records import Job, JobPage, Language, Session, SessionFile
from ._results import Result, ToolResult, result_of
from ._shape import Fields
from ._sync import EventStream, File, ToolCaller, tool_events
from ._tools import Tool, Tools, checked_tools
from ._uploads import owner_fields, upload_form


class Svc:
    """
    A client of one service. May be used by several threads; each request has a connection of its own.

    `base_url`: with or without /v1. `token`: an access token or API key. `timeout`: seconds for a call with its repeats, for calls
    that name none; None: no limit. `connect_timeout`: for each address. `max_retries`: repeats of what the service calls safe to repeat.
    `proxy`: http://host:port; None takes HTTP_PROXY, HTTPS_PROXY and NO_PROXY, "" none. `ssl_context`: for authorities of your own.
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        token: Optional[str] = None,
        *,
        timeout: Optional[float] = DEFAULT_TIMEOUT,
        connect_timeout: float = DEFAULT_CONNECT_TIMEOUT,
        max_retries: int = 2,
        proxy: Optional[str] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._core: "Core[File]" = Core(
            base_url, token, timeout, connect_timeout, max_retries, proxy, ssl_context, self._file
        )
        self.jobs = Jobs(self)
        self.sessions = Sessions(self)

    def run(
        self,
        code: str,
        *,
        language: str = "python",
        args: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        files: Sequence[InputFile] = (),
        env: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        run_timeout_ms: Optional[int] = None,
        session: Optional[str] = None,
        session_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> "Result[File]":
        """
        Runs a program and waits for its end. `run_timeout_ms`: limit of the run itself. `session`: name of the persistent session to
        continue; `session_id`: an earlier execution, to continue its session. Raises SvcError; a program that fails is a result.
        """
        fields = requests.program(
            code, language=language, args=args, stdin=stdin, files=files, env=env, version=version
        )
        request = requests.run(
            fields,
            run_timeout_ms=run_timeout_ms,
            session=session,
            session_id=session_id,
            idempotency_key=idempotency_key,
        )
        return self._drive(self._core.run(request, timeout))

    def stream(
        self,
        code: str,
        *,
        language: str = "python",
        args: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        files: Sequence[InputFile] = (),
        env: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        run_timeout_ms: Optional[int] = None,
        session: Optional[str] = None,
        session_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> "EventStream[Result[File]]":
        """As `run`, with output and files as they come; the last event has the result. `timeout`: for the whole stream."""
        fields = requests.program(
            code, language=language, args=args, stdin=stdin, files=files, env=env, version=version
        )
        request = requests.run(
            fields,
            run_timeout_ms=run_timeout_ms,
            session=session,
            session_id=session_id,
            idempotency_key=idempotency_key,
        )
        return EventStream(self, self._core.events(requests.streamed(request), timeout), result_of)

    def upload(
        self,
        source: Union[PathLike, bytes],
        *,
        name: Optional[str] = None,
        content_type: str = "application/octet-stream",
        kind: str = "user",
        resource_id: Optional[str] = None,
        version: Optional[float] = None,
        read_only: bool = False,
        timeout: Optional[float] = None,
    ) -> File:
        """Stores a file of this machine, or bytes under a name. The answer goes into `files` of a run."""
        form = upload_form(kind, resource_id, version, read_only)
        fields = self._drive(self._core.upload(source, name, content_type, form, timeout))
        return File(**{**fields, **owner_fields(kind, resource_id, version)}, _svc=self)

    def languages(self) -> Tuple[Language, ...]:
        return self._drive(self._core.languages())

    def with_tools(self, tools: Tools) -> "WithTools":
        """Functions of the caller, by the names under which programs call them."""
        return WithTools(self, checked_tools(tools))

    def _file(self, entry: Fields) -> File:
        return File(**output_fields(entry), _svc=self)

    def _drive(self, plan: "Plan[T]", begun: Callable[[Exchange], None] = ignore) -> T:
        """`begun` is told each exchange before it is opened."""
        caller = ToolCaller()
        try:
            step = next(plan)
            while True:
                try:
                    done = self._perform(step, caller, begun)
                except BaseException as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(done)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            caller.close()

    def _perform(self, step: Step, caller: ToolCaller, begun: Callable[[Exchange], None]) -> Any:
        if isinstance(step, Send):
            exchange = self._core.exchange(step)
            begun(exchange)
            return perform(step, exchange)
        if isinstance(step, Sleep):
            return time.sleep(step.seconds)
        return caller(step)


class WithTools:
    def __init__(self, svc: Svc, tools: Dict[str, Tool]) -> None:
        self._svc = svc
        self._tools = tools

    def run(
        self,
        code: str,
        *,
        language: str = "python",
        args: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        files: Sequence[InputFile] = (),
        env: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        run_timeout_ms: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> "ToolResult[File]":
        """
        Runs a Python or Bash program and answers its calls until it ends. Calls of one batch are answered one after the other;
        asynchronous functions together. A function's exception fails its call, and the program sees the text. `run_timeout_ms`: for each
        stretch between two pauses. `timeout`: for each request; functions take the time that they take.
        """
        fields = requests.program(
            code, language=language, args=args, stdin=stdin, files=files, env=env, version=version
        )
        program = ToolProgram(fields, run_timeout_ms, self._tools)
        return self._svc._drive(self._svc._core.tools(program, timeout))

    def stream(
        self,
        code: str,
        *,
        language: str = "python",
        args: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        files: Sequence[InputFile] = (),
        env: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        run_timeout_ms: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> "Generator[ToolEvent[File], None, None]":
        """
        As `run`, with output, files and calls as they come; the last event has the result. A call is told before its function runs. The
        request goes out with the first event. Leaving the loop before the last event cancels the program as soon as the generator is closed.
        """
        fields = requests.program(
            code, language=language, args=args, stdin=stdin, files=files, env=env, version=version
        )
        return tool_events(self._svc, ToolProgram(fields, run_timeout_ms, self._tools), timeout)


class Jobs:
    """Runs that nobody waits for."""

    def __init__(self, svc: Svc) -> None:
        self._svc = svc

    def create(
        self,
        code: str,
        *,
        language: str = "python",
        args: Optional[Sequence[str]] = None,
        stdin: Optional[str] = None,
        files: Sequence[InputFile] = (),
        env: Optional[Mapping[str, str]] = None,
        version: Optional[str] = None,
        run_timeout_ms: Optional[int] = None,
        session: Optional[str] = None,
        session_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> "Job[File]":
        """As `Svc.run`; answers at once."""
        fields = requests.program(
            code, language=language, args=args, stdin=stdin, files=files, env=env, version=version
        )
        request = requests.run(
            fields,
            run_timeout_ms=run_timeout_ms,
            session=session,
            session_id=session_id,
            idempotency_key=idempotency_key,
        )
        return self._svc._drive(self._svc._core.create_job(request, timeout))

    def get(self, job_id: str, *, wait_ms: Optional[int] = None) -> "Job[File]":
        """`wait_ms`: wait for the job's end, at most 30,000."""
        return self._svc._drive(self._svc._core.job(job_id, wait_ms))

    def wait(self, job_id: str, *, timeout: float = math.inf) -> "Job[File]":
        """
        The job when it is over. `timeout`: seconds; then RequestTimeout is raised, and the job goes on. Of more than 32 waits at once those
        beyond are refused, and come again until they are let in.
        """
        return self._svc._drive(self._svc._core.wait_for_job(job_id, timeout))

    def list(self, *, cursor: Optional[str] = None) -> "JobPage[File]":
        return self._svc._drive(self._svc._core.jobs(cursor))

    def cancel(self, job_id: str) -> bool:
        """True: it was not over, and becomes cancelled. False: it was over, and is removed."""
        return self._svc._drive(self._svc._core.cancel_job(job_id))

    def events(self, job_id: str, *, timeout: Optional[float] = None) -> "EventStream[Result[File]]":
        """From the job's beginning. Closing the stream does not cancel it."""
        return EventStream(self._svc, self._svc._core.events(requests.job_events(job_id), timeout), result_of)


class Sessions:
    """Persistent sessions, where the operator has switched them on (docs/sessions.md)."""

    def __init__(self, svc: Svc) -> None:
        self._svc = svc

    def list(self) -> Tuple[Session, ...]:
        """All of the caller's, the last used one first."""
        return self._svc._drive(self._svc._core.sessions())

    def files(self, session_id: str) -> Tuple[SessionFile, ...]:
        """What the session's workspace holds."""
        return self._svc._drive(self._svc._core.session_files(session_id))

    def delete(self, session_id: str) -> None:
        self._svc._drive(self._svc._core.delete_session(session_id))
