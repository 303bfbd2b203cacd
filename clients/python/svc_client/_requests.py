"""The requests of the public API (docs/openapi.json). Pure: nothing is sent here."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, Mapping, Optional, Sequence, Union
from urllib.parse import urlencode

from ._files import FileInfo, InputFile, checked_id, references, version_text
from ._form import Form
from ._http import Request

_JSON = {"Content-Type": "application/json"}
_EVENTS = {"Accept": "text/event-stream"}
#: The service sends a comment every 10 s; three that do not come are a dead connection.
STREAM_IDLE = 40.0


def json_body(value: Mapping[str, Any]) -> bytes:
    """Raises ValueError for NaN and TypeError for what is not JSON."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("utf-8")


def program(
    code: str,
    *,
    language: str,
    args: Optional[Sequence[str]],
    stdin: Optional[str],
    files: Sequence[InputFile],
    env: Optional[Mapping[str, str]],
    version: Optional[str],
) -> Dict[str, Any]:
    """The fields that every route for programs has. What is None is left out."""
    if args is not None and isinstance(args, str):
        raise TypeError("args must be a list of strings, not one string")
    return _given(
        code=code,
        language=language,
        args=None if args is None else list(args),
        stdin=stdin,
        files=references(files) or None,
        env=None if env is None else dict(env),
        version=version,
    )


def _given(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def run(
    fields: Mapping[str, Any],
    *,
    run_timeout_ms: Optional[int],
    session: Optional[str],
    session_id: Optional[str],
    idempotency_key: Optional[str],
) -> Request:
    more = _given(run_timeout=run_timeout_ms, runtime_session_hint=session, session_id=session_id)
    headers = _given(**{"Idempotency-Key": idempotency_key})
    if idempotency_key is not None and not (idempotency_key.isascii() and idempotency_key.isprintable()):
        raise ValueError("idempotency_key must be 1 to 255 printable ASCII characters")
    return Request("POST", "/exec", {**_JSON, **headers}, json_body({**fields, **more}))


def streamed(request: Request) -> Request:
    return replace(request, headers={**request.headers, **_EVENTS}, idle=STREAM_IDLE)


def as_job(request: Request) -> Request:
    headers = {**request.headers, "Prefer": "respond-async"}
    return Request(request.method, request.path, headers, request.body, success=frozenset({202}))


def job(job_id: str, wait_ms: Optional[int]) -> Request:
    return Request("GET", f"/jobs/{checked_id(job_id)}{_query(wait_ms=wait_ms)}")


def job_wait(job_id: str, wait_ms: int) -> Request:
    return replace(job(job_id, wait_ms), waits_out=True)


def job_events(job_id: str) -> Request:
    return streamed(Request("GET", f"/jobs/{checked_id(job_id)}/events"))


def jobs(cursor: Optional[str]) -> Request:
    return Request("GET", f"/jobs{_query(cursor=cursor)}")


def cancel_job(job_id: str) -> Request:
    return Request("DELETE", f"/jobs/{checked_id(job_id)}", success=frozenset({202, 204}))


def languages() -> Request:
    return Request("GET", "/languages")


def sessions() -> Request:
    return Request("GET", "/sessions")


def session_files(session_id: str) -> Request:
    return Request("GET", f"/sessions/{checked_id(session_id)}/files")


def delete_session(session_id: str) -> Request:
    return Request("DELETE", f"/sessions/{checked_id(session_id)}", success=frozenset({204}))


def upload(form: Form) -> Request:
    return Request("POST", "/upload", {"Content-Type": form.content_type}, form)


def download(file: FileInfo) -> Request:
    """Files of agents and skills are found by whose they are."""
    path = f"/download/{checked_id(file.storage_session_id)}/{checked_id(file.id)}"
    if file.kind == "user":
        return Request("GET", path)
    version = None if file.version is None else version_text(file.version)
    return Request("GET", path + _query(kind=file.kind, id=file.resource_id, version=version))


def start_tools(fields: Mapping[str, Any], run_timeout_ms: Optional[int], label: str) -> Request:
    """`label`: by which the program can be cancelled."""
    headers = {**_JSON, "X-LibreChat-Code-Request-ID": label}
    body = {**fields, **_given(timeout=run_timeout_ms)}
    return Request("POST", "/exec/programmatic", headers, json_body(body))


def resume_tools(token: str, results: Sequence[Mapping[str, Any]]) -> Request:
    body = {"continuation_token": token, "tool_results": list(results)}
    return Request("POST", "/exec/programmatic", _JSON, json_body(body), waits_out=True)


def cancel_tools(label: str) -> Request:
    return Request("POST", "/exec/programmatic/cancel", _JSON, json_body({"request_id": label}))


def _query(**fields: Optional[Union[str, int]]) -> str:
    text = urlencode({name: str(value) for name, value in fields.items() if value is not None})
    return f"?{text}" if text else ""
