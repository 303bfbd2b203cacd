"""Every method of Svc against a running service."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from svc_client import FileStored, Finished, InlineFile, RequestTimeout, Started, Stderr, Stdout, Tool, ToolCall, errors
from tests.live.target import SLEEPER, client, new_marker, processes_with, wait_until


class Runs(unittest.TestCase):
    def test_all_fields_of_a_run(self):
        code = "import os, sys\nprint(sys.argv[1:], sys.stdin.read(), os.environ['UNIT'], open('a.txt').read())\nsys.exit(3)"
        result = client().run(
            code,
            language="py",
            args=["one", "ü"],
            stdin="in",
            files=[InlineFile("a.txt", "inline")],
            env={"UNIT": "km"},
            version="3",
            run_timeout_ms=20_000,
        )
        self.assertEqual(result.stdout, "['one', 'ü'] in km inline\n")
        self.assertEqual((result.code, result.status, result.ok, result.language), (3, None, False, "python"))
        self.assertEqual(result.limits.run_timeout_ms, 20_000)
        self.assertRegex(result.request_id, r"^[\w.:-]+$")
        self.assertGreater(result.memory, 0)

    def test_a_time_limit_is_a_result(self):
        result = client().run("sleep 60", language="bash", run_timeout_ms=200)
        self.assertEqual((result.status, result.signal, result.message), ("TO", "SIGKILL", "Time limit exceeded"))

    def test_the_same_key_runs_once(self):
        key = new_marker()
        code = "import random; print(random.random())"
        first, second = (client().run(code, idempotency_key=key) for _ in range(2))
        self.assertEqual(first.session_id, second.session_id)
        with self.assertRaises(errors.IdempotencyKeyReused):
            client().run("print(1)", idempotency_key=key)

    def test_refusals_have_their_class(self):
        with self.assertRaises(errors.UnsupportedLanguage) as caught:
            client().run("x", language="klingon")
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "unsupported_language"))
        self.assertIn("Installed", caught.exception.message)
        self.assertIsNotNone(caught.exception.request_id)
        with self.assertRaises(errors.InvalidRequest) as caught:
            client().run("x", env={"SVC_X": "y"})
        self.assertIn("env", caught.exception.details[0].path)
        with self.assertRaises(errors.RequestTooLarge):
            client().run("#" * 9 * 1024 * 1024)

    def test_languages(self):
        [python] = [one for one in client().languages() if one.name == "python"]
        self.assertEqual((python.status, python.file_extension), ("ready", "py"))
        self.assertIn("pandas", [package.name for package in python.packages])
        self.assertIn("py", python.aliases)

    def test_a_time_limit_of_the_client_ends_the_program(self):
        marker = new_marker()
        with client().stream(SLEEPER, args=[marker], timeout=600) as stream:
            wait_for_begin(stream)
            with self.assertRaises(RequestTimeout):
                client().run("import time; time.sleep(120)", args=[f"{marker}-2"], timeout=3)
        wait_until(lambda: processes_with(marker) == [])


def wait_for_begin(stream):
    """Until the program of SLEEPER has begun."""
    for event in stream:
        if isinstance(event, Stdout):
            return
    raise AssertionError("the stream ended")


class Files(unittest.TestCase):
    def test_a_file_goes_in_and_out(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "sales.csv")
            source.write_text("item,price\ntea,3\n", "utf-8")
            stored = client().upload(source, content_type="text/csv")
            self.assertEqual((stored.name, stored.size, stored.content_type), ("sales.csv", 17, "text/csv"))
            code = "open('copy.csv', 'w').write(open('in/s.csv').read())"
            result = client().run(code, files=[stored.named("in/s.csv")])
            made, unchanged = result.files
            self.assertEqual((made.name, unchanged.inherited), ("copy.csv", True))
            self.assertEqual(made.download(), source.read_bytes())
            self.assertEqual(made.save(pathlib.Path(folder, "out.csv")).read_bytes(), source.read_bytes())
            again = client().run("print(open('copy.csv').read())", files=[made])
            self.assertEqual(again.stdout, "item,price\ntea,3\n\n")

    def test_names_arrive_as_they_are(self):
        names = ['we"ird/né %22.csv', "a;b='c'.txt", "日本/データ.csv", "sp ace"]
        for name in names:
            stored = client().upload(b"x", name=name)
            self.assertEqual(stored.name, name)
            listed = client().run("find . -type f | grep -v script.sh", language="bash", files=[stored], session=new_marker())
            self.assertEqual(listed.stdout, f"./{name}\n")

    def test_a_file_of_the_largest_size(self):
        data = b"0123456789abcdef" * (25 * 65536)
        stored = client().upload(data, name="large")
        self.assertEqual(stored.download(), data)
        with self.assertRaises(errors.FileTooLarge):
            client().upload(data + b"x", name="larger")

    def test_files_of_a_skill(self):
        stored = client().upload(b"x", name="s.txt", kind="skill", resource_id="charts", version=2, read_only=True)
        self.assertEqual(stored.download(), b"x")
        result = client().run("print(open('s.txt').read())", files=[stored])
        self.assertEqual((result.stdout, result.files[0].kind, result.files[0].version), ("x\n", "skill", 2))

    def test_a_file_that_is_not_there(self):
        from dataclasses import replace

        stored = client().upload(b"x", name="a")
        with self.assertRaises(errors.FileNotFound):
            replace(stored, id="x" * 21).download()
        with self.assertRaises(errors.FileReferenceDenied):
            client().run("", files=[replace(stored, id="x" * 21)])


class Streams(unittest.TestCase):
    def test_output_comes_while_the_program_runs(self):
        marker = new_marker()
        with client().stream(SLEEPER, args=[marker]) as stream:
            wait_for_begin(stream)
            self.assertNotEqual(processes_with(marker), [])
        wait_until(lambda: processes_with(marker) == [])

    def test_the_events_are_the_result(self):
        code = "import sys\nfor i in range(100): print(i, 'é😀')\nprint('oh', file=sys.stderr)\nopen('o.txt', 'w').write('x')"
        events = list(client().stream(code))
        self.assertIsInstance(events[0], Started)
        self.assertIsInstance(events[-1], Finished)
        result = events[-1].result
        self.assertEqual(events[0].session_id, result.session_id)
        self.assertEqual("".join(one.text for one in events if isinstance(one, Stdout)), result.stdout)
        self.assertEqual("".join(one.text for one in events if isinstance(one, Stderr)), result.stderr)
        self.assertEqual([one.file for one in events if isinstance(one, FileStored)], list(result.files))
        self.assertEqual(result.files[0].download(), b"x")

    def test_a_refusal(self):
        with self.assertRaises(errors.UnsupportedLanguage):
            next(client().stream("x", language="klingon"))


def price(item: str, currency: str = "EUR") -> float:
    """Price of an item."""
    if item == "none":
        raise LookupError("there is no such item")
    return {"tea": 3.5, "cake": 4}[item]


async def stock(item: str) -> int:
    return len(item)


class Tools(unittest.TestCase):
    def test_calls_are_answered_until_the_program_ends(self):
        code = """
a, b, n = await asyncio.gather(price(item="tea"), price("cake", currency="USD"), stock("tea"))
print(a + b, n)
for _ in range(3):
    print(await stock("x" * (_ + 1)))
try:
    await price("none")
except ToolExecutionError as error:
    print(error)
"""
        result = client().with_tools({"price": price, "stock": stock}).run(code)
        self.assertEqual(result.stdout, "7.5 3\n1\n2\n3\nthere is no such item\n")
        self.assertEqual((result.ok, result.tool_calls_made, result.error), (True, 7, None))

    def test_a_program_that_is_watched(self):
        code = "print('before'); a = await price('tea'); print(a); b = await stock('xx'); print(b)"
        seen = list(client().with_tools({"price": price, "stock": stock}).stream(code))
        calls = [(one.name, dict(one.arguments)) for one in seen if isinstance(one, ToolCall)]
        self.assertEqual(calls, [("price", {"item": "tea"}), ("stock", {"item": "xx"})])
        [last] = [one for one in seen if isinstance(one, Finished)]
        self.assertIs(last, seen[-1])
        text = "".join(one.text for one in seen if isinstance(one, Stdout))
        self.assertEqual((text, last.result.ok), (last.result.stdout, True))
        at = [type(one) for one in seen]
        self.assertLess(at.index(Stdout), at.index(ToolCall))

    def test_a_watched_program_that_is_left_ends(self):
        marker = new_marker()
        program = client().with_tools({"stock": stock}).stream("print(1); await stock('x')", args=[marker])
        for one in program:
            if isinstance(one, ToolCall):
                break
        self.assertNotEqual(processes_with(marker), [])
        program.close()
        wait_until(lambda: processes_with(marker) == [])

    def test_a_program_of_bash_and_files(self):
        tools = {"look-up": Tool(lambda **arguments: arguments, "Echoes.", {"type": "object"})}
        code = "look_up '{\"a\": [1, null]}' | tee out.json"
        result = client().with_tools(tools).run(code, language="bash", files=[InlineFile("in.txt", "x")])
        self.assertEqual(result.stdout, '{"a":[1,null]}\n')
        self.assertEqual({file.name: file.download() for file in result.files if not file.inherited}, {"out.json": b'{"a":[1,null]}\n'})

    def test_a_program_that_fails_is_a_result(self):
        result = client().with_tools({"price": price}).run("await price('none')")
        self.assertEqual((result.ok, result.status, result.error_type, result.code), (False, "error", "nonzero_exit", 1))
        self.assertIn("there is no such item", result.stderr)

    def test_an_interrupt_in_a_function_ends_the_program(self):
        marker = new_marker()

        def interrupted() -> None:
            self.assertNotEqual(processes_with(marker), [])
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            client().with_tools({"interrupted": interrupted}).run("await interrupted()", args=[marker])
        wait_until(lambda: processes_with(marker) == [])

    def test_a_loop_that_is_the_callers_own_says_what_to_use(self):
        import asyncio

        async def main():
            return client().with_tools({"stock": stock}).run("await stock('x')")

        noise = io.StringIO()
        with contextlib.redirect_stderr(noise), self.assertRaisesRegex(RuntimeError, "AsyncSvc"):
            asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
