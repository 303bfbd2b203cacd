"""Servers that answer late, never, too much, or something else: each call ends in time, with an error that says what happened."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from svc_client import (
    ConnectionFailed,
    InvalidAnswer,
    RequestTimeout,
    Stdout,
    Svc,
    SvcError,
    errors,
)
from svc_client import _events, _retry
from tests.servers import FILE, RESULT, error, event, serve

#: Far beyond what a call may take here; a test that needs it has failed.
LONG = 30.0
CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def client(server, **options):
    return Svc(server.url, "token", **{"timeout": LONG, "proxy": "", **options})


def drip(connection):
    """One byte now and then, for ever."""
    connection.send("HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.send("x")
        time.sleep(0.02)


class Answers(unittest.TestCase):
    def refused(self, kind, answer, **options):
        with serve(answer) as server, self.assertRaises(kind) as caught:
            client(server, **options).run("x")
        return caught.exception

    def test_a_right_answer_and_what_was_sent_for_it(self):
        with serve(lambda connection: connection.answer(200, RESULT, "X-Request-Id: r-1")) as server:
            result = client(server).run("print(42)", language="py", args=["a"], session="draft", idempotency_key="k 1")
        self.assertEqual((result.stdout, result.request_id, result.ok), ("42\n", "r-1", True))
        head, _, body = server.requests[0].partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.assertEqual(lines[0], "POST /v1/exec HTTP/1.1")
        for line in (f"Host: {server.url[7:]}", "Authorization: Bearer token", "Idempotency-Key: k 1", "Connection: close"):
            self.assertIn(line, lines)
        sent = {"code": "print(42)", "language": "py", "args": ["a"], "runtime_session_hint": "draft"}
        self.assertEqual(json.loads(body), sent)

    def test_nobody_listens(self):
        with serve(lambda connection: None) as server:
            pass
        with self.assertRaises(ConnectionFailed):
            client(server).run("x")

    def test_a_server_that_never_answers(self):
        found = self.refused(RequestTimeout, lambda connection: connection.wait_for_end(), timeout=0.2)
        self.assertIsInstance(found, TimeoutError)
        self.assertEqual((found.code, found.status), ("client_timeout", None))

    def test_a_server_that_never_ends_its_headers(self):
        self.refused(RequestTimeout, drip, timeout=0.3)

    def test_a_server_that_never_reads(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            svc = Svc(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)
            with self.assertRaises(RequestTimeout):
                svc.upload(b"x" * 64 * 1024 * 1024, name="large")

    def test_a_server_that_closes(self):
        self.refused(ConnectionFailed, lambda connection: None)

    def test_bodies_that_end_early(self):
        for text in ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", f"{CHUNKED}5\r\n{{}}", f"{CHUNKED}zz\r\n", CHUNKED):
            self.refused(ConnectionFailed, lambda connection: connection.send(text))

    def test_what_is_not_http_or_not_ours(self):
        answers = (
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 200 + "\r\n",
            "HTTP/1.1 200 OK\r\nX: " + "y" * 100_000 + "\r\n\r\n",
            "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        )
        for text in answers:
            self.refused(InvalidAnswer, lambda connection: connection.send(text))

    def test_a_redirect_is_not_followed(self):
        with serve(lambda connection: connection.answer(307, {}, "Location: /elsewhere")) as server:
            with self.assertRaises(InvalidAnswer):
                client(server).run("x")
        self.assertEqual(len(server.requests), 1)

    def test_error_bodies_beyond_their_bound_are_not_read(self):
        found = self.refused(InvalidAnswer, lambda connection: connection.answer(503, b"x" * 70_000))
        self.assertIn("larger than", str(found))

    def test_endless_answers_are_given_up(self):
        def endless(connection):
            connection.send(CHUNKED)
            while True:
                connection.send("10000\r\n" + "x" * 65536 + "\r\n")

        self.assertIn("larger than", str(self.refused(InvalidAnswer, endless)))

    def test_a_refusal_before_the_whole_upload_is_read(self):
        body = json.dumps(error("file_too_large")).encode()

        def refuse(connection):
            connection.send(b"HTTP/1.1 413 Told\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        with serve(refuse) as server, self.assertRaises(errors.FileTooLarge):
            client(server).upload(b"x" * 1000, name="a")


class Files(unittest.TestCase):
    """Of the caller: their faults say nothing of the connection."""

    def upload(self, path):
        with serve(lambda connection: connection.answer(200, {"files": []})) as server:
            client(server).upload(path)

    def test_what_is_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertRaises(FileNotFoundError, self.upload, os.path.join(folder, "none"))
            self.assertRaises(IsADirectoryError, self.upload, folder)

    def test_one_that_may_not_be_read(self):
        with tempfile.NamedTemporaryFile() as file, mock.patch("builtins.open", side_effect=PermissionError(file.name)):
            self.assertRaises(PermissionError, self.upload, file.name)

    def test_one_that_changes_while_it_is_sent(self):
        real = os.stat
        for change, said in ((1, "became shorter"), (-1, "became longer")):
            sized = lambda path, **more: mock.Mock(st_size=real(path, **more).st_size + change)
            with tempfile.NamedTemporaryFile() as file:
                file.write(b"1,2")
                file.flush()
                with mock.patch("svc_client._form.os.stat", sized), self.assertRaisesRegex(OSError, said):
                    self.upload(file.name)


class Retries(unittest.TestCase):
    def setUp(self):
        before = _retry.FIRST_DELAY
        _retry.FIRST_DELAY = 0.001
        self.addCleanup(setattr, _retry, "FIRST_DELAY", before)

    def calls(self, *answers, **options):
        with serve(*[lambda connection, told=told: connection.answer(*told) for told in answers]) as server:
            try:
                outcome = client(server, **options).run("x").stdout
            except SvcError as failure:
                outcome = failure.code
        return outcome, len(server.requests)

    def test_what_is_safe_to_repeat_is_repeated(self):
        busy, broken = (503, error("queue_saturated")), (503, error("sandbox_setup_failed"), "Retry-After: 0")
        self.assertEqual(self.calls(busy, broken, (200, RESULT)), ("42\n", 3))
        self.assertEqual(self.calls(busy), ("queue_saturated", 3))
        self.assertEqual(self.calls(busy, max_retries=0), ("queue_saturated", 1))

    def test_nothing_else_is(self):
        for status, code in ((429, "rate_limited"), (500, "internal_error"), (502, "sandbox_execution_failed"), (503, "store_unavailable")):
            self.assertEqual(self.calls((status, error(code)), (200, RESULT)), (code, 1))
        self.assertEqual(self.calls((502, b"<html>"), (200, RESULT)), ("invalid_answer", 1))

    def test_a_wait_that_is_too_long_is_not_begun(self):
        self.assertEqual(self.calls((503, error("queue_saturated"), "Retry-After: 31")), ("queue_saturated", 1))
        told = (503, error("queue_saturated"), "Retry-After: 3")
        self.assertEqual(self.calls(told, timeout=2.9), ("queue_saturated", 1))

    def test_a_form_is_sent_again_whole(self):
        stored = {"files": [{**FILE, "contentType": "text/csv"}]}
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            file.write(b"x,y\n1,2\n")
            file.flush()
            busy = lambda connection: connection.answer(503, error("queue_saturated"))
            with serve(busy, lambda connection: connection.answer(200, stored)) as server:
                client(server).upload(file.name)
        bodies = [request.split("\r\n\r\n", 1)[1] for request in server.requests]
        self.assertEqual(bodies[0], bodies[1])
        self.assertIn(f"filename*=UTF-8''{os.path.basename(file.name)}\r\n", bodies[0])


class Streams(unittest.TestCase):
    def events(self, *pieces, **options):
        got = []
        with serve(lambda connection: connection.stream(*pieces)) as server:
            try:
                for one in client(server, **options).stream("x"):
                    got.append(one)
            except SvcError as failure:
                got.append(failure)
        return got

    def test_a_right_stream(self):
        started = {"session_id": "s" * 21, "language": "python", "version": "3"}
        pieces = [":\n\n", event("started", started), event("later", {}), event("stdout", {"text": "é"}), event("stderr", {"text": "e"}),
                  event("file", FILE), event("result", RESULT), event("stdout", {"text": "behind the end"})]
        self.assertEqual([one.event for one in self.events(*pieces)], ["started", "stdout", "stderr", "file", "result"])
        cut = [bytes([byte]) for byte in "".join(pieces).encode()]
        self.assertEqual([one.event for one in self.events(*cut)], ["started", "stdout", "stderr", "file", "result"])

    def test_a_stream_that_ends_without_its_result(self):
        got = self.events(event("stdout", {"text": "a"}), "event: result\ndata: {}")
        self.assertEqual([type(one) for one in got], [Stdout, ConnectionFailed])

    def test_an_error_event_is_raised_by_its_class_after_what_came_before(self):
        got = self.events(event("stdout", {"text": "a"}) + event("error", error("sandbox_execution_failed")))
        self.assertEqual([type(one) for one in got], [Stdout, errors.SandboxExecutionFailed])
        self.assertEqual((got[1].status, got[1].request_id), (502, "req-1"))

    def test_broken_events(self):
        for piece in ("event: stdout\ndata: {\n\n", "event: stdout\ndata: []\n\n", event("stdout", {"text": 1}), event("result", {}),
                      event("error", {"error": 1}), "event: stdout\ndata: \udcff\n\n".encode("utf-8", "surrogateescape")):
            self.assertEqual([type(one) for one in self.events(piece)], [InvalidAnswer], piece)

    def test_an_event_that_never_ends_is_given_up(self):
        before = _events.EventReader.__init__.__defaults__
        self.addCleanup(setattr, _events.EventReader.__init__, "__defaults__", before)
        _events.EventReader.__init__.__defaults__ = (None, 1_000_000)
        got = self.events(*["event: stdout\ndata: "], *["x" * 65536] * 20)
        self.assertIn("larger than 1000000 bytes", str(got[0]))

    def test_an_answer_that_is_no_stream(self):
        with serve(lambda connection: connection.answer(200, RESULT, "Content-Type: application/json")) as server:
            with self.assertRaises(InvalidAnswer):
                next(client(server).stream("x"))

    def test_a_refusal_before_the_first_event(self):
        with serve(lambda connection: connection.answer(400, error("unsupported_language"))) as server:
            with self.assertRaises(errors.UnsupportedLanguage):
                next(client(server).stream("x"))

    def test_leaving_closes_the_connection(self):
        def left(close):
            gone = threading.Event()

            def answer(connection):
                connection.stream(event("stdout", {"text": "a"}))
                connection.wait_for_end()
                gone.set()

            with serve(answer) as server:
                stream = client(server).stream("x")
                self.assertEqual(next(stream), Stdout("a"))
                close(stream)
                del stream
                self.assertTrue(gone.wait(LONG))

        left(lambda stream: stream.close())
        left(lambda stream: stream.__exit__())
        left(lambda stream: None)

    def test_another_thread_ends_a_stream_that_waits(self):
        def answer(connection):
            connection.stream(event("stdout", {"text": "a"}))
            connection.wait_for_end()

        with serve(answer) as server:
            stream = client(server).stream("x")
            next(stream)
            threading.Timer(0.1, stream.close).start()
            with self.assertRaises((ConnectionFailed, StopIteration)):
                next(stream)

    def test_another_thread_ends_a_stream_whose_answer_has_not_begun(self):
        def silent(connection):
            arrived.set()
            connection.wait_for_end()
            gone.set()

        def busy(connection):
            connection.answer(503, error("queue_saturated"), "Retry-After: 1")
            arrived.set()

        def read(stream):
            try:
                got.extend(stream)
            except SvcError as failure:
                got.append(failure)

        for answer in (silent, busy):
            arrived, gone, got = threading.Event(), threading.Event(), []
            with serve(answer, silent) as server:
                stream = client(server, timeout=4).stream("x")
                reading = threading.Thread(target=read, args=(stream,))
                reading.start()
                self.assertTrue(arrived.wait(LONG))
                stream.close()
                reading.join(LONG)
            self.assertEqual([type(one) for one in got], [ConnectionFailed])

    def test_the_time_of_a_stream_is_bounded(self):
        def answer(connection):
            connection.stream()
            while True:
                connection.send(":\n\n")
                time.sleep(0.02)

        with serve(answer) as server, self.assertRaises(RequestTimeout):
            next(client(server, timeout=0.3).stream("x"))


class Ways(unittest.TestCase):
    def test_a_forward_proxy_gets_the_whole_address(self):
        with serve(lambda connection: connection.answer(200, RESULT)) as proxy:
            svc = Svc("http://code.example/base/v1", "token", proxy=proxy.url.replace("//", "//user:pass@"), timeout=LONG)
            self.assertEqual(svc.run("x").stdout, "42\n")
        lines = proxy.requests[0].split("\r\n")
        self.assertEqual(lines[0], "POST http://code.example/base/v1/exec HTTP/1.1")
        self.assertIn("Host: code.example", lines)
        self.assertIn("Proxy-Authorization: Basic dXNlcjpwYXNz", lines)

    def test_an_interrupt_closes_the_connection(self):
        arrived, gone = threading.Event(), threading.Event()

        def answer(connection):
            arrived.set()
            connection.wait_for_end()
            gone.set()

        with serve(answer) as server:
            program = f"import svc_client; svc_client.Svc({server.url!r}).run('x')"
            with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as child:
                self.assertTrue(arrived.wait(LONG))
                child.send_signal(signal.SIGINT)
                self.assertTrue(gone.wait(LONG))
                self.assertIn(b"KeyboardInterrupt", child.stderr.read())

    def test_threads_share_a_client(self):
        with serve(lambda connection: connection.answer(200, RESULT)) as server:
            svc, found = client(server), []
            threads = [threading.Thread(target=lambda: found.append(svc.run("x").ok)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(found, [True] * 8)


class Downloads(unittest.TestCase):
    def download(self, answer, path=None):
        with serve(lambda connection: connection.answer(200, {**RESULT, "files": [FILE]}), answer) as server:
            [file] = client(server).run("x").files
            self.assertEqual(file.name, "plot.png")
            return file.download() if path is None else file.save(path)

    def test_bytes_and_files(self):
        self.assertEqual(self.download(lambda connection: connection.answer(200, b"\x89PNG")), b"\x89PNG")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.png")
            self.download(lambda connection: connection.answer(200, b"\x89PNG"), path)
            self.assertEqual(os.listdir(folder), ["a.png"])

    def test_a_name_of_the_greatest_length_in_any_writing(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("x" * 255, "\N{GRINNING FACE}" * 62 + ".png"):
                path = os.path.join(folder, name)
                self.download(lambda connection: connection.answer(200, b"\x89PNG"), path)
                self.assertTrue(os.path.exists(path))

    def test_a_failed_download_leaves_the_older_file(self):
        wrong = (b"\x89PN", b"\x89PNGX")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.png")
            with open(path, "wb") as file:
                file.write(b"older")
            for body in wrong:
                with self.assertRaises((ConnectionFailed, InvalidAnswer)):
                    self.download(lambda connection: connection.answer(200, body), path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), b"older")
            self.assertEqual(os.listdir(folder), ["a.png"])

    def test_a_file_that_is_gone(self):
        with self.assertRaises(errors.FileNotFound):
            self.download(lambda connection: connection.answer(404, error("file_not_found")))

    def test_ids_that_would_leave_the_path_are_refused(self):
        for name in ("id", "storage_session_id"):
            hostile = {**RESULT, "files": [{**FILE, name: "../../elsewhere"}]}
            with serve(lambda connection: connection.answer(200, hostile)) as server:
                with self.assertRaises(InvalidAnswer):
                    client(server).run("x")


if __name__ == "__main__":
    unittest.main()
