"""What an execution answers. Times are in milliseconds, sizes in bytes; `raw` is the whole answer with fields that have no name here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Generic, Mapping, Optional, Tuple, TypeVar

from ._files import FileInfo
from ._shape import Fields

FileT = TypeVar("FileT", bound=FileInfo)
#: Makes a file of an entry of `files`.
FileReader = Callable[[Fields], FileT]


@dataclass(frozen=True)
class Limits:
    """The limits that the run had."""

    run_timeout_ms: int
    memory_bytes: int


@dataclass(frozen=True)
class Timings:
    queue_ms: float
    setup_ms: float
    run_ms: float
    collect_ms: float


@dataclass(frozen=True)
class OmittedFile:
    """A file of the program that did not come back. `reason`: count, size, total_size, name, type, quota or upload_failed."""

    name: str
    reason: str


@dataclass(frozen=True)
class Result(Generic[FileT]):
    """
    How a program ended. `status`: None when it ended by itself, with any exit code; TO time limit, ML memory limit, OL and EL output limits,
    SG a signal, CE the compiler failed. `message`: the same in words. `ok`: exit code 0 and no status.
    """

    session_id: str
    stdout: str
    stderr: str
    files: Tuple[FileT, ...]
    code: int
    signal: Optional[str]
    status: Optional[str]
    message: Optional[str]
    limits: Limits
    wall_time: float
    cpu_time: float
    memory: int
    language: str
    version: str
    timings: Timings
    deleted_files: Tuple[str, ...]
    files_omitted: Tuple[OmittedFile, ...]
    request_id: Optional[str]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.code == 0 and self.status is None


@dataclass(frozen=True)
class ToolResult(Generic[FileT]):
    """
    How a program with tools ended. `status`: completed or error; with error, `error` is a sentence and `error_type` a word
    (docs/tool-calling.md, Failures). `execution_time`: run time of all rounds. `sandbox_status`: as Result.status.
    """

    session_id: str
    status: str
    stdout: str
    stderr: str
    files: Tuple[FileT, ...]
    code: int
    signal: Optional[str]
    sandbox_status: Optional[str]
    error: Optional[str]
    error_type: Optional[str]
    tool_calls_made: int
    execution_time: float
    limits: Limits
    deleted_files: Tuple[str, ...]
    files_omitted: Tuple[OmittedFile, ...]
    request_id: Optional[str]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.status == "completed"


def _limits(answer: Fields) -> Limits:
    limits = answer.inner("limits")
    return Limits(limits.integer("run_timeout_ms"), limits.integer("memory_bytes"))


def _omitted(answer: Fields) -> Tuple[OmittedFile, ...]:
    entries = answer.optional_objects("files_omitted")
    return tuple(OmittedFile(entry.text("name"), entry.text("reason")) for entry in entries)


def result_of(answer: Fields, file: FileReader[FileT], request_id: Optional[str]) -> Result[FileT]:
    timings = answer.inner("timings")
    return Result(
        session_id=answer.text("session_id"),
        stdout=answer.text("stdout"),
        stderr=answer.text("stderr"),
        files=tuple(file(entry) for entry in answer.objects("files")),
        code=answer.integer("code"),
        signal=answer.optional_text("signal"),
        status=answer.optional_text("status"),
        message=answer.optional_text("message"),
        limits=_limits(answer),
        wall_time=answer.number("wall_time"),
        cpu_time=answer.number("cpu_time"),
        memory=answer.integer("memory"),
        language=answer.text("language"),
        version=answer.text("version"),
        timings=Timings(*(timings.number(name) for name in ("queue_ms", "setup_ms", "run_ms", "collect_ms"))),
        deleted_files=answer.texts("deleted_files"),
        files_omitted=_omitted(answer),
        request_id=request_id,
        raw=answer.raw,
    )


def tool_result_of(answer: Fields, file: FileReader[FileT], request_id: Optional[str]) -> ToolResult[FileT]:
    return ToolResult(
        session_id=answer.text("session_id"),
        status=answer.text("status"),
        stdout=answer.text("stdout"),
        stderr=answer.text("stderr"),
        files=tuple(file(entry) for entry in answer.objects("files")),
        code=answer.integer("code"),
        signal=answer.optional_text("signal"),
        sandbox_status=answer.optional_text("sandbox_status"),
        error=answer.optional_text("error"),
        error_type=answer.optional_text("error_type"),
        tool_calls_made=answer.integer("tool_calls_made"),
        execution_time=answer.number("execution_time"),
        limits=_limits(answer),
        deleted_files=answer.texts("deleted_files"),
        files_omitted=_omitted(answer),
        request_id=request_id,
        raw=answer.raw,
    )
