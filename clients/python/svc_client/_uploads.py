"""The fields of an upload beside the file."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ._files import version_text


def upload_form(
    kind: str, resource_id: Optional[str], version: Optional[float], read_only: bool
) -> Dict[str, str]:
    """Raises ValueError: the service would store the file as the caller's own."""
    if kind == "user" and (resource_id is not None or version is not None):
        raise ValueError("resource_id and version are of an agent or a skill: give its kind, too")
    fields = {"kind": kind if kind != "user" else None, "id": resource_id}
    more = {"version": None if version is None else version_text(version), "read_only": "true" if read_only else None}
    return {name: value for name, value in {**fields, **more}.items() if value is not None}


def owner_fields(kind: str, resource_id: Optional[str], version: Optional[float]) -> Dict[str, Any]:
    """Of FileInfo: whose file it is."""
    return {"kind": kind, "resource_id": resource_id, "version": version}
