"""The service that the tests of this folder run against: SVC_TEST_URL, SVC_TEST_TOKEN and SVC_TEST_PROXY, and what of it is on this machine."""

import os
import pathlib
import time
import uuid

from svc_client import AsyncSvc, Svc

#: Seconds in which a step must come true on a machine that does other work.
WAIT_SECONDS = 30.0
_SETTINGS = {
    "base_url": os.environ["SVC_TEST_URL"],
    "token": os.environ.get("SVC_TEST_TOKEN"),
    "proxy": os.environ.get("SVC_TEST_PROXY"),
}


def client(**options):
    return Svc(**{**_SETTINGS, **options})


def async_client(**options):
    return AsyncSvc(**{**_SETTINGS, **options})


def new_marker():
    """A word that no other process of this machine has in its command line."""
    return f"marker-{uuid.uuid4()}"


def processes_with(marker):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            pass  # It has ended.
    return found


def wait_until(holds):
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        time.sleep(0.02)


#: A program that shows that it runs, and goes on for long.
SLEEPER = "import time\nprint('begun', flush=True)\ntime.sleep(120)"
