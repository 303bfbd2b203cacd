"""Jobs that nobody waits for, against a running service."""

import asyncio
import time
import unittest

from svc_client import Finished, Started, Stdout, errors
from tests.live.target import WAIT_SECONDS, SLEEPER, async_client, client, new_marker, processes_with, wait_until


def ended(svc, job_id):
    """The job when it is over, asked for as a user does."""
    end = time.monotonic() + WAIT_SECONDS
    job = svc.jobs.get(job_id, wait_ms=30_000)
    while not job.ended and time.monotonic() < end:
        job = svc.jobs.get(job_id, wait_ms=30_000)
    return job


class Jobs(unittest.TestCase):
    def test_a_job_from_its_beginning_to_its_removal(self):
        svc = client()
        made = svc.jobs.create("import sys\nprint('done')\nopen('o.txt', 'w').write('x')\nsys.exit(3)", session=new_marker())
        self.assertFalse(made.ended)
        job = ended(svc, made.id)
        self.assertEqual((job.id, job.status, job.language, job.error), (made.id, "completed", "python", None))
        self.assertEqual((job.result.stdout, job.result.code), ("done\n", 3))
        self.assertEqual(job.result.files[0].download(), b"x")
        self.assertRegex(job.ended_at, r"^\d{4}-\d\d-\d\dT.*Z$")
        self.assertIn(made.id, [one.id for one in svc.jobs.list().jobs])
        events = list(svc.jobs.events(made.id))
        self.assertIsInstance(events[0], Started)
        self.assertEqual("".join(one.text for one in events if isinstance(one, Stdout)), "done\n")
        self.assertIsInstance(events[-1], Finished)
        self.assertIs(svc.jobs.cancel(made.id), False)
        with self.assertRaises(errors.JobNotFound):
            svc.jobs.get(made.id)

    def test_a_job_that_is_cancelled(self):
        svc, marker = client(), new_marker()
        made = svc.jobs.create(SLEEPER, args=[marker])
        stream = svc.jobs.events(made.id)
        for event in stream:
            if isinstance(event, Stdout):
                break
        self.assertNotEqual(processes_with(marker), [])
        self.assertIs(svc.jobs.cancel(made.id), True)
        with self.assertRaises(errors.ExecutionCancelled):
            for event in stream:
                pass
        wait_until(lambda: processes_with(marker) == [])
        job = ended(svc, made.id)
        self.assertEqual((job.status, job.result, type(job.error)), ("cancelled", None, errors.ExecutionCancelled))

    def test_leaving_the_events_does_not_end_the_job(self):
        svc = client()
        made = svc.jobs.create("import time\nprint('a', flush=True)\ntime.sleep(1)\nprint('b')")
        with svc.jobs.events(made.id) as stream:
            next(stream)
        self.assertEqual(ended(svc, made.id).result.stdout, "a\nb\n")

    def test_pages(self):
        svc = client()
        made = [svc.jobs.create("") for _ in range(3)]
        page, found = svc.jobs.list(), []
        while True:
            found += [job.id for job in page.jobs]
            if page.next_cursor is None:
                break
            page = svc.jobs.list(cursor=page.next_cursor)
        self.assertLessEqual({job.id for job in made}, set(found))

    def test_refusals(self):
        with self.assertRaises(errors.UnsupportedLanguage):
            client().jobs.create("x", language="klingon")
        with self.assertRaises(errors.JobNotFound):
            client().jobs.get("x" * 21)


class AsyncJobs(unittest.IsolatedAsyncioTestCase):
    async def test_jobs(self):
        svc = async_client()
        made = await asyncio.gather(*(svc.jobs.create(f"print({at})") for at in range(4)))
        texts = []
        for job in made:
            texts += [event.text async for event in svc.jobs.events(job.id) if isinstance(event, Stdout)]
        self.assertEqual(texts, ["0\n", "1\n", "2\n", "3\n"])
        self.assertEqual([(await svc.jobs.get(job.id)).status for job in made], ["completed"] * 4)
        self.assertEqual([await svc.jobs.cancel(job.id) for job in made], [False] * 4)


if __name__ == "__main__":
    unittest.main()
