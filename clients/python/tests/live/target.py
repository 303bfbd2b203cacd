"""
The service that the tests of this folder run against: TEST_URL, TEST_TOKEN and TEST_PROXY. TEST_PROCESSES is an
address that answers GET ?MARKER with what runs on its machine with this word in its command line, as a list in JSON.
"""

import json
import os
import time
import urllib.request
import uuid

from svc_client import AsyncSvc, Svc

#: Seconds in which a step must come true on a machine that does other work.
WAIT_SECONDS = 30.0 * float(os.environ.get("TEST_SLOWNESS", "1"))
_SETTINGS = {
    "base_url": os.environ["TEST_URL"],
    "token": os.environ.get("TEST_TOKEN"),
    "proxy": os.environ.get("TEST_PROXY"),
}


def client(**options):
    return Svc(**{**_SETTINGS, **options})


def async_client(**options):
    return AsyncSvc(**{**_SETTINGS, **options})


def new_marker():
    """A word that no other process of this machine has in its command line."""
    return f"marker-{uuid.uuid4()}"


def processes_with(marker):
    with urllib.request.urlopen(f"{os.environ['TEST_PROCESSES']}?{marker}") as answer:
        return json.load(answer)


def wait_until(holds):
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        time.sleep(0.02)


#: A program that shows that it runs, and goes on for long.
SLEEPER = "import time\nprint('begun', flush=True)\ntime.sleep(120)"
