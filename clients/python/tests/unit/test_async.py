"""The asynchronous client: what a cancelled task leaves, and that it does as the other one."""

import asyncio
import inspect
import json
import threading
import time
import unittest
import unittest.mock

from svc_client import AsyncSvc, ConnectionFailed, Finished, RequestTimeout, Stdout, Svc, ToolCall, _async_svc, _svc, errors
from tests.servers import FILE, RESULT, error, event, serve

LONG = 30.0


def client(server, **options):
    return AsyncSvc(server.url, **{"timeout": LONG, **options})


class Waiting:
    """An answer that never comes, and whether the client is still there."""

    def __init__(self, begin=lambda connection: None):
        self.begin, self.arrived, self.gone = begin, threading.Event(), threading.Event()

    def __call__(self, connection):
        self.begin(connection)
        self.arrived.set()
        connection.wait_for_end()
        self.gone.set()


class Cancelling(unittest.IsolatedAsyncioTestCase):
    async def cancelled(self, waiting, make):
        with serve(waiting) as server:
            task = asyncio.ensure_future(make(client(server)))
            await asyncio.to_thread(waiting.arrived.wait, LONG)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(await asyncio.to_thread(waiting.gone.wait, LONG))

    async def test_a_run(self):
        await self.cancelled(Waiting(), lambda svc: svc.run("x"))

    async def test_a_stream(self):
        async def read(svc):
            async for one in svc.stream("x"):
                self.assertEqual(one, Stdout("a"))

        await self.cancelled(Waiting(lambda connection: connection.stream(event("stdout", {"text": "a"}))), read)

    async def test_a_stream_that_is_left(self):
        waiting = Waiting(lambda connection: connection.stream(event("stdout", {"text": "a"})))
        with serve(waiting) as server:
            async with client(server).stream("x") as stream:
                self.assertEqual(await stream.__anext__(), Stdout("a"))
            self.assertTrue(await asyncio.to_thread(waiting.gone.wait, LONG))

    async def test_a_stream_that_another_task_closes_before_its_answer_has_begun(self):
        waiting = Waiting()
        with serve(waiting) as server:
            stream = client(server, timeout=4).stream("x")
            reading = asyncio.ensure_future(stream.__anext__())
            await asyncio.to_thread(waiting.arrived.wait, LONG)
            await stream.aclose()
            with self.assertRaises(ConnectionFailed):
                await reading
            self.assertTrue(await asyncio.to_thread(waiting.gone.wait, LONG))

    async def test_a_time_limit_of_the_caller(self):
        waiting = Waiting()
        with serve(waiting) as server:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client(server).run("x"), 0.2)
            self.assertTrue(await asyncio.to_thread(waiting.gone.wait, LONG))

    async def test_a_time_limit_of_the_client(self):
        with serve(Waiting()) as server, self.assertRaises(RequestTimeout):
            await client(server, timeout=0.2).run("x")


PAUSE = {
    "status": "tool_call_required",
    "session_id": "s" * 21,
    "continuation_token": "token-1",
    "tool_calls": [{"id": "call_001", "name": "wait", "arguments": {}}],
}
ENDED = {
    **{name: RESULT[name] for name in ("session_id", "stdout", "stderr", "files", "code", "signal", "limits")},
    "status": "completed",
    "sandbox_status": None,
    "tool_calls_made": 1,
    "execution_time": 1.0,
}


def label_of(request):
    [line] = [line for line in request.split("\r\n") if line.startswith("X-LibreChat-Code-Request-ID: ")]
    return line.split(": ")[1]


class Tools(unittest.IsolatedAsyncioTestCase):
    def assert_cancelled(self, requests, rounds):
        self.assertEqual(len(requests), rounds + 1)
        self.assertTrue(requests[-1].startswith("POST /v1/exec/programmatic/cancel "))
        self.assertIn(label_of(requests[0]), requests[-1].split("\r\n\r\n")[1])

    async def test_a_task_that_is_cancelled_in_a_tool_cancels_the_program(self):
        entered = asyncio.Event()

        async def wait():
            entered.set()
            await asyncio.sleep(3600)

        answers = [lambda one: one.answer(200, PAUSE), lambda one: one.answer(200, {"status": "cancelled", "cancelled": 1})]
        with serve(*answers) as server:
            task = asyncio.ensure_future(client(server).with_tools({"wait": wait}).run("x"))
            await entered.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.assert_cancelled(server.requests, 1)

    STREAMED = (
        lambda one: one.stream(event("stdout", {"text": "a"}), event("result", PAUSE)),
        lambda one: one.stream(event("stdout", {"text": "b"}), event("result", ENDED)),
    )
    #: What a caller sees of them.
    SEEN = [Stdout("a"), ToolCall("call_001", "wait", {}), Stdout("b")]

    async def test_a_program_that_is_watched_tells_its_calls_before_they_are_answered(self):
        async def read(program):
            return [one async for one in program]

        for make in (
            lambda url, tools: list(Svc(url, timeout=LONG).with_tools(tools).stream("x")),
            lambda url, tools: asyncio.run(read(AsyncSvc(url, timeout=LONG).with_tools(tools).stream("x"))),
        ):
            with serve(*self.STREAMED) as server:
                *seen, last = await asyncio.to_thread(make, server.url, {"wait": lambda: 7})
            self.assertEqual(seen, self.SEEN)
            self.assertEqual((type(last), last.result.ok), (Finished, True))
            self.assertEqual(len(server.requests), 2)
            self.assertIn('{"call_id":"call_001","result":7}', server.requests[1])
            for sent in server.requests:
                self.assertIn("\r\nAccept: text/event-stream\r\n", sent)

    async def test_a_watched_program_that_is_left_is_cancelled(self):
        cancelled = lambda one: one.answer(200, {"status": "cancelled", "cancelled": 1})
        for events in (1, 2):
            with serve(self.STREAMED[0], cancelled) as server:
                program = Svc(server.url, timeout=LONG).with_tools({"wait": lambda: 7}).stream("x")
                self.assertEqual([next(program) for _ in range(events)], self.SEEN[:events])
                program.close()
            self.assert_cancelled(server.requests, 1)
            with serve(self.STREAMED[0], cancelled) as server:
                program = client(server).with_tools({"wait": lambda: 7}).stream("x")
                self.assertEqual([await program.__anext__() for _ in range(events)], self.SEEN[:events])
                await program.aclose()
            self.assert_cancelled(server.requests, 1)

    async def test_a_watched_program_whose_loop_ends_with_its_result_is_over(self):
        with serve(*self.STREAMED) as server:
            for one in Svc(server.url, timeout=LONG).with_tools({"wait": lambda: 7}).stream("x"):
                if isinstance(one, Finished):
                    break
        self.assertEqual(len(server.requests), 2)

    async def test_a_watched_program_that_the_service_ends_raises_its_error(self):
        answers = [self.STREAMED[0], lambda one: one.stream(event("error", error("tool_call_timeout"))), lambda one: one.answer(200, {})]
        with serve(*answers) as server, self.assertRaises(errors.SvcError) as caught:
            list(Svc(server.url, timeout=LONG).with_tools({"wait": lambda: 7}).stream("x"))
        self.assertEqual(caught.exception.code, "tool_call_timeout")

    async def test_a_watched_start_that_is_refused_has_nothing_to_cancel(self):
        with serve(lambda one: one.answer(400, error("unsupported_language"))) as server:
            with self.assertRaises(errors.UnsupportedLanguage):
                await client(server).with_tools({}).stream("x").__anext__()
        self.assertEqual(len(server.requests), 1)

    async def test_a_start_that_is_given_up_cancels_the_program(self):
        waiting = Waiting()
        with serve(waiting, lambda one: one.answer(200, {"status": "cancelled", "cancelled": 1})) as server:
            task = asyncio.ensure_future(client(server).with_tools({}).run("x"))
            await asyncio.to_thread(waiting.arrived.wait, LONG)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.assert_cancelled(server.requests, 1)

    async def test_a_start_that_is_refused_has_nothing_to_cancel(self):
        with serve(lambda one: one.answer(400, error("unsupported_language"))) as server:
            with self.assertRaises(errors.UnsupportedLanguage):
                await client(server).with_tools({}).run("x")
        self.assertEqual(len(server.requests), 1)

    async def test_a_resume_that_fails_cancels_the_program(self):
        answers = [
            lambda one: one.answer(200, PAUSE),
            lambda one: one.answer(422, error("tool_result_too_large")),
            lambda one: one.answer(500, error("internal_error")),
        ]
        with serve(*answers) as server, self.assertRaises(errors.ToolResultTooLarge):
            await client(server).with_tools({"wait": lambda: 1}).run("x")
        self.assert_cancelled(server.requests, 2)

    async def test_resumes_that_are_too_many_at_once_come_again_until_they_are_taken(self):
        limited = lambda one: one.answer(429, error("rate_limited"), "Retry-After: 0")
        paused, ended = (lambda one: one.answer(200, PAUSE)), (lambda one: one.answer(200, ENDED))
        tools = {"wait": lambda: 1}
        with serve(paused, *[limited] * 5, ended) as server:
            self.assertTrue((await client(server).with_tools(tools).run("x")).ok)
        self.assertEqual(len(server.requests), 7)
        begun, over = self.STREAMED
        with serve(begun, *[limited] * 5, over) as server:
            seen = await asyncio.to_thread(lambda: list(Svc(server.url, timeout=LONG).with_tools(tools).stream("x")))
        self.assertEqual((seen[:-1], len(server.requests)), (self.SEEN, 7))
        for answers, options, sent in (([limited], {}, 1), ([paused, limited], {"max_retries": 0}, 3)):
            with serve(*answers) as server, self.assertRaises(errors.RateLimited):
                await client(server, **options).with_tools(tools).run("x")
            self.assertEqual(len(server.requests), sent)

    def test_an_interrupt_in_a_tool_cancels_the_program(self):
        def wait():
            raise KeyboardInterrupt

        with serve(lambda one: one.answer(200, PAUSE), lambda one: None) as server:
            with self.assertRaises(KeyboardInterrupt):
                Svc(server.url, timeout=LONG).with_tools({"wait": wait}).run("x")
        self.assert_cancelled(server.requests, 1)

    async def test_tools_of_one_batch_run_together(self):
        calls = [{"id": f"call_00{at}", "name": name, "arguments": {}} for at, name in enumerate(("wait", "plain"))]
        met = threading.Barrier(2)

        async def wait():
            await asyncio.to_thread(met.wait, LONG)
            return "async"

        def plain():
            met.wait(LONG)
            return "plain"

        with serve(lambda one: one.answer(200, {**PAUSE, "tool_calls": calls}), lambda one: one.answer(200, ENDED)) as server:
            found = await client(server).with_tools({"wait": wait, "plain": plain}).run("x")
        self.assertTrue(found.ok)
        sent = server.requests[1]
        self.assertIn('{"call_id":"call_000","result":"async"},{"call_id":"call_001","result":"plain"}', sent)

    async def test_a_function_whose_own_work_is_cancelled_fails_its_call_alone(self):
        calls = [{"id": f"call_00{at}", "name": name, "arguments": {}} for at, name in enumerate(("own", "blocking", "other"))]

        async def own():
            work = asyncio.ensure_future(asyncio.sleep(3600))
            asyncio.get_running_loop().call_soon(work.cancel)
            await work

        def blocking():
            raise asyncio.CancelledError("the pool is closed")

        async def other():
            for _ in range(10):
                await asyncio.sleep(0)
            return "done"

        tools = {"own": own, "blocking": blocking, "other": other}
        paused, ended = (lambda one: one.answer(200, {**PAUSE, "tool_calls": calls})), (lambda one: one.answer(200, ENDED))
        told = [
            {"call_id": "call_000", "is_error": True, "error_message": "CancelledError"},
            {"call_id": "call_001", "is_error": True},
            {"call_id": "call_002", "result": "done"},
        ]
        for run in (
            lambda server: client(server).with_tools(tools).run("x"),
            lambda server: asyncio.to_thread(Svc(server.url, timeout=LONG).with_tools(tools).run, "x"),
        ):
            with serve(paused, ended) as server:
                self.assertTrue((await run(server)).ok)
            sent = json.loads(server.requests[1].split("\r\n\r\n")[1])["tool_results"]
            # A task that was cancelled keeps no text.
            self.assertIn(sent[1].pop("error_message"), ("the pool is closed", "CancelledError"))
            self.assertEqual(sent, told)

    async def test_a_task_that_is_cancelled_ends_all_tools_of_a_batch(self):
        calls = [{"id": f"call_00{at}", "name": "wait", "arguments": {}} for at in range(3)]
        entered, left = [], []

        async def wait():
            entered.append(1)
            pause = 0.1 * len(entered)
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(pause)
                left.append(1)

        def cancel(connection):
            at_cancel.append(len(left))
            connection.answer(200, {"status": "cancelled", "cancelled": 1})

        at_cancel = []
        with serve(lambda one: one.answer(200, {**PAUSE, "tool_calls": calls}), cancel) as server:
            task = asyncio.ensure_future(client(server).with_tools({"wait": wait}).run("x"))
            while len(entered) < len(calls):
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        self.assertEqual(at_cancel, [len(calls)])
        self.assert_cancelled(server.requests, 1)

    def test_calls_that_no_tool_answers_fail_alone(self):
        calls = [{"id": "call_001", "name": "other", "arguments": {"a": 1}}]
        with serve(lambda one: one.answer(200, {**PAUSE, "tool_calls": calls}), lambda one: one.answer(200, ENDED)) as server:
            Svc(server.url, timeout=LONG).with_tools({"wait": lambda: 1}).run("x")
        self.assertIn('"is_error":true', server.requests[1])

    def test_a_pause_without_calls_is_no_answer(self):
        cancelled = {"status": "cancelled", "cancelled": 1}
        answers = [lambda one: one.answer(200, {**PAUSE, "tool_calls": []}), lambda one: one.answer(200, cancelled)]
        with serve(*answers) as server:
            with self.assertRaises(errors.InvalidAnswer):
                Svc(server.url, timeout=LONG).with_tools({}).run("x")


class Jobs(unittest.IsolatedAsyncioTestCase):
    async def test_what_goes_over_the_wire(self):
        job = {"job_id": "j" * 21, "status": "queued"}
        failed = {**job, "status": "failed", "error": error("sandbox_execution_failed")}
        answers = [
            lambda one: one.answer(202, job),
            lambda one: one.answer(200, {**job, "status": "completed", "result": RESULT}),
            lambda one: one.answer(200, {"jobs": [failed], "next_cursor": "c&1"}),
            lambda one: one.answer(200, {"jobs": []}),
            lambda one: one.answer(202, {}),
            lambda one: one.send("HTTP/1.1 204 No Content\r\n\r\n"),
            lambda one: one.stream(event("result", {**RESULT, "files": [FILE]})),
        ]
        with serve(*answers) as server:
            jobs = client(server).jobs
            made = await jobs.create("x")
            self.assertEqual((made.id, made.status, made.ended), ("j" * 21, "queued", False))
            got = await jobs.get(made.id, wait_ms=30_000)
            self.assertEqual((got.result.stdout, got.ended), ("42\n", True))
            page = await jobs.list()
            self.assertEqual((type(page.jobs[0].error), page.next_cursor), (errors.SandboxExecutionFailed, "c&1"))
            self.assertEqual((await jobs.list(cursor="c&1")).next_cursor, None)
            self.assertEqual([await jobs.cancel(made.id), await jobs.cancel(made.id)], [True, False])
            self.assertEqual([one.event async for one in jobs.events(made.id)], ["result"])
        id = "j" * 21
        self.assertEqual([request.split(" HTTP")[0] for request in server.requests], [
            "POST /v1/exec", f"GET /v1/jobs/{id}?wait_ms=30000", "GET /v1/jobs", "GET /v1/jobs?cursor=c%261",
            f"DELETE /v1/jobs/{id}", f"DELETE /v1/jobs/{id}", f"GET /v1/jobs/{id}/events",
        ])
        self.assertIn("\r\nPrefer: respond-async\r\n", server.requests[0])
        self.assertIn("\r\nAccept: text/event-stream\r\n", server.requests[6])


    async def test_a_wait_goes_on_until_the_job_is_over(self):
        job = {"job_id": "j" * 21, "status": "running"}
        busy = {**error("rate_limited", retry_after_seconds=0)}
        answers = [
            lambda one: one.answer(200, job),
            *[lambda one: one.answer(429, busy)] * 3,
            lambda one: one.answer(200, {**job, "status": "completed", "result": RESULT}),
        ]
        with serve(*answers) as server:
            done = await client(server).jobs.wait("j" * 21)
        self.assertEqual(done.result.stdout, "42\n")
        self.assertEqual({one.split(" HTTP")[0] for one in server.requests}, {f"GET /v1/jobs/{'j' * 21}?wait_ms=30000"})
        self.assertEqual(len(server.requests), 5)

    async def test_a_wait_of_both_clients_ends_with_its_time(self):
        job = {"job_id": "j" * 21, "status": "running"}

        def late(connection):
            time.sleep(0.2)
            connection.answer(200, job)

        with serve(*[late] * 20) as server:
            with self.assertRaises(errors.RequestTimeout):
                await client(server).jobs.wait("j" * 21, timeout=0.5)
            with self.assertRaises(errors.RequestTimeout):
                await asyncio.to_thread(lambda: Svc(server.url, timeout=LONG).jobs.wait("j" * 21, timeout=0.5))
        asked = [int(one.split("wait_ms=")[1].split(" ")[0]) for one in server.requests]
        self.assertEqual([at for at in asked if not 0 <= at <= 500], [])

    async def test_a_wait_that_is_not_answered_ends_with_the_time_of_a_call(self):
        with unittest.mock.patch("svc_client._plans.WAIT_SECONDS", 0.1), serve(Waiting()) as server:
            with self.assertRaises(errors.RequestTimeout):
                await AsyncSvc(server.url, timeout=0.2).jobs.wait("j" * 21)


class Surface(unittest.TestCase):
    def test_both_clients_have_the_same_methods_and_parameters(self):
        def surface(module, prefix):
            found = {}
            for name in ("Svc", "WithTools", "Jobs", "Sessions"):
                for method, function in vars(getattr(module, prefix + name)).items():
                    if not method.startswith("_"):
                        found[name, method] = [
                            (one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()
                        ]
            return found

        self.assertEqual(surface(_svc, ""), surface(_async_svc, "Async"))
        self.assertGreater(len(surface(_svc, "")), 12)

    def test_a_file_of_no_client_says_so(self):
        from svc_client import AsyncFile, File

        with self.assertRaises(ValueError):
            File("f" * 21, "s" * 21, "n", 1, "t").download()
        with self.assertRaises(ValueError):
            asyncio.run(AsyncFile("f" * 21, "s" * 21, "n", 1, "t").download())


if __name__ == "__main__":
    unittest.main()
