"""
Runs programs in the single-use jails of an svc service.

    from svc_client import Svc

    svc = Svc("http://127.0.0.1:3112")
    print(svc.run("print(6 * 7)").stdout)

`Svc` blocks, `AsyncSvc` is for asyncio; docs/clients.md describes both. The standard library is all that they need.
"""

from . import errors
from ._async import AsyncEventStream, AsyncFile
from ._async_svc import AsyncSvc
from ._base import ConnectionFailed, InvalidAnswer, Problem, RequestTimeout, SvcError
from ._events import Event, FileStored, Finished, Started, Stderr, Stdout, ToolEvent
from ._files import FileInfo, InlineFile, InputFile
from ._http import VERSION as __version__
from ._records import Job, JobPage, Language, Package, Session, SessionFile
from ._results import Limits, OmittedFile, Result, Timings, ToolResult
from ._svc import Svc
from ._sync import EventStream, File
from ._tools import Tool, ToolCall, Tools

__all__ = [
    "AsyncEventStream",
    "AsyncFile",
    "AsyncSvc",
    "ConnectionFailed",
    "Event",
    "EventStream",
    "File",
    "FileInfo",
    "FileStored",
    "Finished",
    "InlineFile",
    "InputFile",
    "InvalidAnswer",
    "Job",
    "JobPage",
    "Language",
    "Limits",
    "OmittedFile",
    "Package",
    "Problem",
    "RequestTimeout",
    "Result",
    "Session",
    "SessionFile",
    "Started",
    "Stderr",
    "Stdout",
    "Svc",
    "SvcError",
    "Timings",
    "Tool",
    "ToolCall",
    "ToolEvent",
    "ToolResult",
    "Tools",
    "__version__",
    "errors",
]
