"""The error that every call may raise, and the ones that this client raises without an answer of the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Problem:
    """One wrong place of a request: `path` like `files[2].name`."""

    path: str
    problem: str


class SvcError(Exception):
    """
    A call failed. The failure of a *program* is no error: it is in the result.

    `code` never changes its meaning (docs/errors.md) and has a class of its own in `svc_client.errors`; a code that this version does not know
    raises SvcError itself. `status` is the HTTP status, None without an answer. `request_id` is what the service's logs know.
    `retry_after`: seconds after which the service wants a repeat. `body`: the whole error body, for fields that only some codes have.
    """

    code: str = "unknown"
    #: `same`: sent again by this client. `yes`: may succeed later, whether the first had an effect is not promised. `no`: fails again.
    repeat: ClassVar[str] = "no"
    #: The usual status of the code: an error inside a stream has none of its own.
    usual_status: ClassVar[Optional[int]] = None

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        status: Optional[int] = None,
        request_id: Optional[str] = None,
        details: Sequence[Problem] = (),
        retry_after: Optional[int] = None,
        body: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.status = status
        self.request_id = request_id
        self.details: Tuple[Problem, ...] = tuple(details)
        self.retry_after = retry_after
        self.body: Mapping[str, Any] = {} if body is None else body

    def __str__(self) -> str:
        places = "; ".join(f"{problem.path}: {problem.problem}" for problem in self.details)
        known = self.code if self.request_id is None else f"{self.code}, request {self.request_id}"
        return f"{self.message}{f' {places}' if places else ''} ({known})"


class ConnectionFailed(SvcError):
    """No connection, or it broke before the answer was whole. Whether the request had an effect is not known."""

    code = "connection_failed"
    repeat = "yes"


class RequestTimeout(SvcError, TimeoutError):
    """The client's own time limit passed (`timeout`, `connect_timeout`). Its connection is closed, which cancels a run."""

    code = "client_timeout"
    repeat = "yes"

    def __init__(self, message: str) -> None:
        SvcError.__init__(self, message)


class InvalidAnswer(SvcError):
    """The answer is not one of this service: a proxy's page, another protocol, broken JSON, more than the bounds allow."""

    code = "invalid_answer"
