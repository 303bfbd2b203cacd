"""What both clients share: their settings, and the plan of each call. `file` makes their kind of file."""

from __future__ import annotations

import ssl
import threading
from typing import Any, Callable, Dict, Generic, Mapping, Optional, Union

from . import _requests as requests
from ._answers import Answer
from ._base import InvalidAnswer
from ._files import FileInfo, upload_fields
from ._form import Form, checked_upload
from ._downloads import PathLike
from ._http import Exchange, Network, Request
from ._plans import Plan, Send, T, ToolProgram, ask, open_stream, run_tools, wait_for_job
from ._records import (
    Job,
    JobPage,
    Language,
    Session,
    SessionFile,
    job_of,
    job_page_of,
    languages_of,
    session_files_of,
    sessions_of,
)
from ._results import FileReader, FileT, Result, ToolResult, result_of
from ._retry import RetryPolicy
from ._shape import Fields
from ._target import authorization_of, target_of

#: Seconds: longer than the service lets a request wait for its turn and its program run.
DEFAULT_TIMEOUT = 600.0
DEFAULT_CONNECT_TIMEOUT = 10.0
DEFAULT_URL = "http://127.0.0.1:3112"


class _Context:
    """The TLS settings; the authorities of the system are read once, at the first use."""

    def __init__(self, given: Optional[ssl.SSLContext]) -> None:
        self._context = given
        self._lock = threading.Lock()

    def __call__(self) -> ssl.SSLContext:
        with self._lock:
            if self._context is None:
                self._context = ssl.create_default_context()
            return self._context


class Core(Generic[FileT]):
    def __init__(
        self,
        base_url: str,
        token: Optional[str],
        timeout: Optional[float],
        connect_timeout: float,
        max_retries: int,
        proxy: Optional[str],
        ssl_context: Optional[ssl.SSLContext],
        file: "FileReader[FileT]",
    ) -> None:
        self._network = Network(
            target_of(base_url, proxy), authorization_of(token), connect_timeout, _Context(ssl_context)
        )
        self._timeout = timeout
        self._policy = RetryPolicy(max_retries)
        self.file = file

    def exchange(self, send: Send) -> Exchange:
        return Exchange(self._network, send.request, send.deadline)

    def _limit(self, timeout: Optional[float]) -> Optional[float]:
        return self._timeout if timeout is None else timeout

    def run(self, request: Request, timeout: Optional[float]) -> "Plan[Result[FileT]]":
        def read(answer: Fields, got: Answer) -> "Result[FileT]":
            return result_of(answer, self.file, got.request_id)

        return ask(request, self._limit(timeout), self._policy, read)

    def tools(self, program: ToolProgram, timeout: Optional[float]) -> "Plan[ToolResult[FileT]]":
        return run_tools(program, self._limit(timeout), self._policy, self.file)

    def events(self, request: Request, timeout: Optional[float]) -> "Plan[Exchange]":
        return open_stream(request, self._limit(timeout), self._policy, "text/event-stream")

    def upload(
        self,
        source: Union[PathLike, bytes],
        name: Optional[str],
        content_type: str,
        fields: Mapping[str, str],
        timeout: Optional[float],
    ) -> "Plan[Dict[str, Any]]":
        """The fields of the file, without whose it is."""
        found, found_name = checked_upload(source, name)
        form = Form(fields, found_name, found, content_type)

        def read(answer: Fields, _: Answer) -> Dict[str, Any]:
            records = answer.objects("files")
            if len(records) != 1:
                raise InvalidAnswer("The answer is not valid: files must have one record.")
            return upload_fields(records[0])

        return ask(requests.upload(form), self._limit(timeout), self._policy, read)

    def download(self, file: FileInfo, timeout: Optional[float]) -> "Plan[Exchange]":
        return open_stream(requests.download(file), self._limit(timeout), self._policy, "")

    def languages(self) -> "Plan[tuple[Language, ...]]":
        return self._ask(requests.languages(), languages_of)

    def sessions(self) -> "Plan[tuple[Session, ...]]":
        return self._ask(requests.sessions(), sessions_of)

    def session_files(self, session_id: str) -> "Plan[tuple[SessionFile, ...]]":
        return self._ask(requests.session_files(session_id), session_files_of)

    def delete_session(self, session_id: str) -> "Plan[None]":
        return self._ask(requests.delete_session(session_id), lambda _: None)

    def create_job(self, request: Request, timeout: Optional[float]) -> "Plan[Job[FileT]]":
        def read(answer: Fields, _: Answer) -> "Job[FileT]":
            return job_of(answer, self.file)

        return ask(requests.as_job(request), self._limit(timeout), self._policy, read)

    def job(self, job_id: str, wait_ms: Optional[int]) -> "Plan[Job[FileT]]":
        return self._ask(requests.job(job_id, wait_ms), lambda answer: job_of(answer, self.file))

    def wait_for_job(self, job_id: str, timeout: float) -> "Plan[Job[FileT]]":
        def read(answer: Fields, _: Answer) -> "Job[FileT]":
            return job_of(answer, self.file)

        return wait_for_job(job_id, timeout, self._timeout, self._policy, read)

    def jobs(self, cursor: Optional[str]) -> "Plan[JobPage[FileT]]":
        return self._ask(requests.jobs(cursor), lambda answer: job_page_of(answer, self.file))

    def cancel_job(self, job_id: str) -> "Plan[bool]":
        def read(_: Fields, got: Answer) -> bool:
            return got.status == 202

        return ask(requests.cancel_job(job_id), self._timeout, self._policy, read)

    def _ask(self, request: Request, read: "Callable[[Fields], T]") -> "Plan[T]":
        return ask(request, self._timeout, self._policy, lambda answer, _: read(answer))
