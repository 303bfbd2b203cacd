"""Read by every interpreter of the image at its start.

Standard output is flushed at each line end when it is a pipe or a socket, as it is on a terminal. So a program that is stopped
at its time limit has shown every line it printed, and lines of several processes do not mix. Fully unbuffered output would
write text and line end apart, which mixes lines of threads and takes half as long again. Into a file, output stays
block-buffered.
Byte code is not written: the workspace's files are the program's results.
"""

import os
import stat
import sys

sys.dont_write_bytecode = True
try:
    if stat.S_IFMT(os.fstat(1).st_mode) in (stat.S_IFIFO, stat.S_IFSOCK):
        sys.stdout.reconfigure(line_buffering=True)
except (AttributeError, OSError):
    pass  # started without a standard output

# A program with tools has them in the children of multiprocessing that run its main module again, too.
if "SANDBOX_TOOL_SOCKET" in os.environ and any(
    module in word for word in sys.orig_argv for module in ("multiprocessing.spawn import", "multiprocessing.forkserver import")
):
    if os.path.exists(os.path.join(os.path.dirname(os.environ["SANDBOX_TOOL_SOCKET"]), "tools.json")):
        sys.path.insert(0, "/usr/lib/svc/ptc")
        import _svc_tools.spawn

        del sys.path[0]
