"""The zygote of programs that need more of the standard library than nearly all do, and of those that have tools."""

import _svc_zygote

_svc_zygote.serve(
    """
    abc argparse array ast asyncio base64 bisect calendar cmath collections.abc concurrent.futures.thread contextlib contextvars copy
    copyreg csv ctypes dataclasses datetime decimal enum fractions functools glob hashlib heapq inspect io itertools json keyword
    locale logging math numbers operator os pathlib pickle pprint queue random re shutil signal socket statistics string struct
    subprocess tempfile textwrap threading time traceback types typing unicodedata uuid warnings weakref zlib
    """.split(),
    preludes=True,
)
