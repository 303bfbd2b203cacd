"""Languages, sessions and jobs as the service lists them. Times are texts: ISO 8601 in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Mapping, Optional, Tuple

from ._answers import error_from_body
from ._base import SvcError
from ._results import FileReader, FileT, Result, result_of
from ._shape import Fields


@dataclass(frozen=True)
class Package:
    name: str
    version: str


@dataclass(frozen=True)
class Language:
    """`status`: ready, or absent when it is not installed there. `raw` has the limits of its runs."""

    name: str
    version: Optional[str]
    aliases: Tuple[str, ...]
    file_extension: str
    status: str
    packages: Tuple[Package, ...]
    commands: Tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Session:
    """A persistent session. `hint`: the `session` of its runs; None for the default one. `size`: bytes of its state."""

    id: str
    hint: Optional[str]
    created_at: str
    last_used_at: str
    expires_at: str
    size: int
    language_last: Optional[str]
    raw: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class SessionFile:
    """`mode`: its permission bits."""

    name: str
    size: int
    mode: int


@dataclass(frozen=True)
class Job(Generic[FileT]):
    """
    A run that nobody waits for. `status`: queued, running, completed, failed or cancelled. A program that fails is `completed`:
    `result` tells. `error`: why the service could not run it, or that it was cancelled. Lists have neither, and a new job no `language`.
    """

    id: str
    status: str
    language: Optional[str]
    created_at: Optional[str]
    started_at: Optional[str]
    ended_at: Optional[str]
    result: Optional[Result[FileT]]
    error: Optional[SvcError]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running")


@dataclass(frozen=True)
class JobPage(Generic[FileT]):
    """Newest first. `next_cursor`: for the next page; None on the last one."""

    jobs: Tuple[Job[FileT], ...]
    next_cursor: Optional[str]


def languages_of(answer: Fields) -> Tuple[Language, ...]:
    return tuple(
        Language(
            name=entry.text("name"),
            version=entry.optional_text("version"),
            aliases=entry.texts("aliases"),
            file_extension=entry.text("file_extension"),
            status=entry.text("status"),
            packages=tuple(
                Package(item.text("name"), item.text("version")) for item in entry.objects("packages")
            ),
            commands=entry.texts("commands"),
            raw=entry.raw,
        )
        for entry in answer.objects("languages")
    )


def sessions_of(answer: Fields) -> Tuple[Session, ...]:
    return tuple(
        Session(
            id=entry.text("id"),
            hint=entry.optional_text("hint"),
            created_at=entry.text("created_at"),
            last_used_at=entry.text("last_used_at"),
            expires_at=entry.text("expires_at"),
            size=entry.integer("size"),
            language_last=entry.optional_text("language_last"),
            raw=entry.raw,
        )
        for entry in answer.objects("sessions")
    )


def session_files_of(answer: Fields) -> Tuple[SessionFile, ...]:
    entries = answer.objects("files")
    return tuple(
        SessionFile(entry.text("name"), entry.integer("size"), entry.integer("mode")) for entry in entries
    )


def job_of(answer: Fields, file: FileReader[FileT]) -> Job[FileT]:
    result, error = answer.optional_inner("result"), answer.optional_inner("error")
    return Job(
        id=answer.text("job_id"),
        status=answer.text("status"),
        language=answer.optional_text("language"),
        created_at=answer.optional_text("created_at"),
        started_at=answer.optional_text("started_at"),
        ended_at=answer.optional_text("ended_at"),
        result=None if result is None else result_of(result, file, None),
        error=None if error is None else error_from_body(error.raw),
        raw=answer.raw,
    )


def job_page_of(answer: Fields, file: FileReader[FileT]) -> JobPage[FileT]:
    jobs = tuple(job_of(entry, file) for entry in answer.objects("jobs"))
    return JobPage(jobs, answer.optional_text("next_cursor"))
