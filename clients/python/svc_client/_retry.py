"""
When a request is sent again, and how late. Only what the service calls safe is repeated (docs/errors.md, `same`), and what waits
out the limits of its caller: resumes of programs with tools, and waits for jobs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional

from ._base import SvcError

#: Without Retry-After: seconds before the first repeat, doubled for each further one.
FIRST_DELAY = 0.5


@dataclass(frozen=True)
class RetryPolicy:
    """
    `repeats`: at most. `longest`: seconds; when the service asks for a longer wait, the error is raised instead, unless the limit is waited
    out.
    """

    repeats: int = 2
    longest: float = 30.0

    def is_waited_out(self, error: SvcError, waits_out: bool) -> bool:
        """Whether the request is repeated until it is let in, however often that is."""
        return waits_out and error.code == "rate_limited" and self.repeats > 0

    def delay(self, error: SvcError, repeats: int, waits_out: bool = False) -> Optional[float]:
        """Seconds until the next attempt after `repeats` of them; None: do not repeat."""
        same = error.repeat == "same" and error.status is not None and repeats < self.repeats
        limited = self.is_waited_out(error, waits_out)
        if not same and not limited:
            return None
        if error.retry_after is not None:
            return float(error.retry_after) if limited or error.retry_after <= self.longest else None
        delay = min(FIRST_DELAY * 2.0**repeats, self.longest)
        return delay * (0.5 + random.random() / 2)
