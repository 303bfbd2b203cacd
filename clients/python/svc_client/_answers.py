"""What the service answered, before it is read as a result: bodies, and error bodies as exceptions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from . import errors
from ._base import InvalidAnswer, Problem, SvcError
from ._shape import parse_object

#: Bounds of what is read into memory, in bytes: an answer, one event, an error body (contract: at most 16 KiB).
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
#: Texts of an error body are cut to this many characters.
MAX_TEXT = 16_384

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_SECONDS = re.compile(r"[0-9]{1,9}\Z")


def _id(value: object) -> Optional[str]:
    return value if isinstance(value, str) and _REQUEST_ID.match(value) is not None else None


@dataclass(frozen=True)
class Answer:
    """`headers`: by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def request_id(self) -> Optional[str]:
        return _id(self.headers.get("x-request-id"))

    def json(self) -> Dict[str, Any]:
        try:
            return parse_object(self.body)
        except InvalidAnswer as error:
            raise InvalidAnswer(error.message, status=self.status, request_id=self.request_id) from error


def error_of(answer: Answer) -> SvcError:
    """The exception for an answer that is no success. Never raises."""
    try:
        return error_from_body(answer.json(), answer)
    except InvalidAnswer:
        text = f"The answer with status {answer.status} is not one that this service gives here."
        return InvalidAnswer(text, status=answer.status, request_id=answer.request_id)


def error_from_body(body: Mapping[str, Any], answer: Optional[Answer] = None) -> SvcError:
    """`answer`: what carried the body; None for an event of a stream. Raises InvalidAnswer for anything but an error body."""
    code, message = body.get("error"), body.get("message")
    if not isinstance(code, str) or _CODE.match(code) is None or not isinstance(message, str):
        raise InvalidAnswer("The answer is not an error body.")
    kind = errors.BY_CODE.get(code, SvcError)
    request_id = _id(body.get("request_id")) or (None if answer is None else answer.request_id)
    return kind(
        message[:MAX_TEXT],
        code=code,
        status=kind.usual_status if answer is None else answer.status,
        request_id=request_id,
        details=_problems(body.get("details")),
        retry_after=_retry_after(body, {} if answer is None else answer.headers),
        body=body,
    )


def _problems(details: object) -> Tuple[Problem, ...]:
    if not isinstance(details, list):
        return ()
    pairs = [(item.get("path"), item.get("problem")) for item in details if isinstance(item, dict)]
    return tuple(
        Problem(path[:MAX_TEXT], problem[:MAX_TEXT])
        for path, problem in pairs
        if isinstance(path, str) and isinstance(problem, str)
    )


def _retry_after(body: Mapping[str, Any], headers: Mapping[str, str]) -> Optional[int]:
    """Whole seconds. The header goes first; a date in it counts as absent, and so does a number beyond the header's."""
    header = headers.get("retry-after", "").strip()
    if _SECONDS.match(header) is not None:
        return int(header)
    seconds = body.get("retry_after_seconds")
    whole = isinstance(seconds, int) and not isinstance(seconds, bool)
    return seconds if whole and _SECONDS.match(str(seconds)) is not None else None
