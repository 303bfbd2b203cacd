"""The zygote of small programs: what nearly all of them use. Each module and mapping more is paid by every copy."""

import _svc_zygote

_svc_zygote.serve(
    """
    bisect cmath collections.abc contextlib copy datetime enum functools heapq io itertools json math operator os random re string
    textwrap threading time traceback types typing unicodedata warnings weakref
    """.split()
)
