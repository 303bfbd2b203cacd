"""A time limit for code of the program that runs while variables are loaded or saved."""

import _signal
import time

REPEATED = 0.1  # seconds between further signals: program code may catch the first one


class Deadline(BaseException):
    """The time is over. Not an Exception, so that fewer handlers catch it."""


class Clock:
    """Interrupts code of the program within its `with` blocks, and nothing else, after a time. Outside of the main thread it
    interrupts nothing. `doing` becomes part of the reason."""

    def __init__(self, doing, seconds):
        self._reason = f"{doing} took longer than {seconds} s"
        self._interrupts = False
        self._end = time.monotonic() + seconds
        self._former = _signal.getsignal(_signal.SIGALRM)
        self._mask = None
        try:
            _signal.signal(_signal.SIGALRM, self._ring)
            self._mask = _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
            _signal.setitimer(_signal.ITIMER_REAL, seconds, REPEATED)
        except ValueError:
            pass

    def _ring(self, _signal, _frame):
        if self._interrupts:
            self.check()

    def stop(self):
        """Restores the former handler, and so releases this object."""
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        try:
            _signal.signal(_signal.SIGALRM, _signal.SIG_DFL if self._former is None else self._former)
            if self._mask is not None:
                _signal.pthread_sigmask(_signal.SIG_SETMASK, self._mask)
        except ValueError:
            pass

    def check(self):
        """Raises Deadline when the time is over."""
        if time.monotonic() >= self._end:
            raise Deadline(self._reason)

    def __enter__(self):
        self.check()
        self._interrupts = True

    def __exit__(self, *_):
        self._interrupts = False
