"""The zygote of small programs, with what nearly all of them use. Every copy pays for each further module and mapping."""

import _svc_zygote

_svc_zygote.serve(
    """
    bisect cmath collections.abc contextlib copy datetime enum functools heapq io itertools json math operator os random re string
    textwrap threading time traceback types typing unicodedata warnings weakref
    """.split()
)
