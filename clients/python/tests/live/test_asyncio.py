"""AsyncSvc against a running service: as Svc, many at once, and cancelled."""

import asyncio
import pathlib
import tempfile
import unittest

from svc_client import Finished, Stdout, errors
from tests.live.target import WAIT_SECONDS, SLEEPER, async_client, new_marker, processes_with, wait_until


async def until(holds):
    await asyncio.to_thread(wait_until, holds)


class Everything(unittest.IsolatedAsyncioTestCase):
    async def test_runs_side_by_side(self):
        svc = async_client()
        results = await asyncio.gather(*(svc.run(f"print({at})") for at in range(12)))
        self.assertEqual([result.stdout for result in results], [f"{at}\n" for at in range(12)])

    async def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "a.txt")
            source.write_bytes(b"data")
            stored = await async_client().upload(source)
            result = await async_client().run("cp a.txt b.txt", language="bash", files=[stored])
            self.assertEqual(await result.files[0].download(), b"data")
            self.assertEqual((await result.files[0].save(pathlib.Path(folder, "b"))).read_bytes(), b"data")

    async def test_a_stream(self):
        events = [event async for event in async_client().stream("for i in range(50): print(i)")]
        self.assertIsInstance(events[-1], Finished)
        text = "".join(event.text for event in events if isinstance(event, Stdout))
        self.assertEqual(text, events[-1].result.stdout)

    async def test_tools(self):
        entered = asyncio.Barrier(3) if hasattr(asyncio, "Barrier") else None

        async def together(n: int) -> int:
            if entered is not None:
                await asyncio.wait_for(entered.wait(), WAIT_SECONDS)
            return n * 2

        code = "print(sum(await asyncio.gather(*(together(n) for n in range(3)))))"
        result = await async_client().with_tools({"together": together}).run(code)
        self.assertEqual((result.stdout, result.ok), ("6\n", True))

    async def test_a_program_that_is_watched(self):
        async def stock(item: str) -> int:
            return len(item)

        seen = []
        async for one in async_client().with_tools({"stock": stock}).stream("print(await stock('abc'))"):
            seen.append(one)
        self.assertEqual([one.event for one in seen], ["started", "call", "started", "stdout", "result"])
        self.assertEqual(seen[-1].result.stdout, "3\n")

    async def test_refusals_and_languages(self):
        with self.assertRaises(errors.UnsupportedLanguage):
            await async_client().run("x", language="klingon")
        self.assertIn("bash", [one.name for one in await async_client().languages()])


class Cancelling(unittest.IsolatedAsyncioTestCase):
    async def ends(self, make):
        """The program is gone when its task is cancelled."""
        marker = new_marker()
        task = asyncio.ensure_future(make(async_client(), marker))
        await until(lambda: processes_with(marker) != [] or task.done())
        self.assertFalse(task.done(), task)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await until(lambda: processes_with(marker) == [])

    async def test_a_run(self):
        await self.ends(lambda svc, marker: svc.run(SLEEPER, args=[marker]))

    async def test_a_stream(self):
        async def read(svc, marker):
            async for _ in svc.stream(SLEEPER, args=[marker]):
                pass

        await self.ends(read)

    async def test_a_program_that_waits_for_a_tool(self):
        async def never():
            await asyncio.sleep(3600)

        await self.ends(lambda svc, marker: svc.with_tools({"never": never}).run("await never()", args=[marker]))

    async def test_a_program_between_two_calls(self):
        async def now():
            return 1

        code = f"await now()\n{SLEEPER}"
        await self.ends(lambda svc, marker: svc.with_tools({"now": now}).run(code, args=[marker]))


if __name__ == "__main__":
    unittest.main()
