"""Addresses, tokens, forms and tool definitions: what is sent, and what is refused before."""

import os
import unittest
from typing import Dict, List, Optional
from unittest import mock

from svc_client import InlineFile, Svc, Tool
from svc_client import _requests as requests
from svc_client._files import FileInfo, checked_id
from svc_client._form import Form
from svc_client._target import target_of
from svc_client._tools import ToolCall, checked_tools, definitions, failed, invoke, succeeded
from svc_client._uploads import upload_form

TOKEN = "svc_secret-of-the-test"


class Addresses(unittest.TestCase):
    def test_with_and_without_v1(self):
        for url in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"):
            target = target_of(url, "")
            self.assertEqual((target.host, target.port, target.prefix, target.host_header), ("h", 1, "", "h:1"))
        self.assertEqual(target_of("https://h/code/v1", "").prefix, "/code")

    def test_ports_and_ipv6(self):
        self.assertEqual(target_of("https://h", "").port, 443)
        target = target_of("http://[::1]:5", "")
        self.assertEqual((target.host, target.host_header), ("::1", "[::1]:5"))

    def test_what_is_no_address(self):
        for url in ("", "h:1", "ftp://h", "http://", "http://h:0", "http://h:x", "http://u:p@h", "http://h?q", "http://h#f",
                    "http://h\r\nX: y", "http://h/\r\nX", "http://h /", "http://h/é"):
            with self.assertRaises(ValueError, msg=url):
                target_of(url, "")

    def test_proxies_of_the_environment(self):
        names = {"HTTP_PROXY": "", "HTTPS_PROXY": "", "NO_PROXY": "", "no_proxy": "inner.example", "ALL_PROXY": ""}
        names.update(http_proxy="http://user:p%40ss@proxy.example:8080", https_proxy="secure.example:3128")
        with mock.patch.dict(os.environ, names):
            proxy = target_of("http://code.example", None).proxy
            self.assertEqual((proxy.host, proxy.port, proxy.authorization), ("proxy.example", 8080, "Basic dXNlcjpwQHNz"))
            self.assertEqual(target_of("https://code.example", None).proxy.port, 3128)
            for url in ("http://inner.example", "http://127.0.0.1:3112", "http://localhost", "http://[::1]"):
                self.assertIsNone(target_of(url, None).proxy, url)
            self.assertIsNone(target_of("http://code.example", "").proxy)
            self.assertEqual(target_of("http://code.example", "http://mine:1").proxy.host, "mine")


class Secrets(unittest.TestCase):
    def test_no_text_of_a_client_shows_its_token(self):
        svc = Svc("http://h", TOKEN)
        for shown in (repr(svc), repr(svc._core), repr(svc._core._network)):
            self.assertNotIn(TOKEN, shown)

    def test_a_token_that_would_break_a_header_is_refused_without_showing_it(self):
        for token in (f"{TOKEN}\r\nX: y", f"{TOKEN} x", "", f"{TOKEN}é"):
            with self.assertRaises(ValueError) as caught:
                Svc("http://h", token)
            self.assertNotIn("secret", str(caught.exception))


class Bodies(unittest.TestCase):
    def test_ids_cannot_leave_their_place_in_a_path(self):
        for value in ("..", "", "a/b", "a?b", "a%2f", "x" * 129, "é", "a\n"):
            with self.assertRaises(ValueError, msg=value):
                checked_id(value)

    def test_what_is_not_given_is_not_sent(self):
        fields = requests.program("x", language="py", args=None, stdin=None, files=(), env=None, version=None)
        self.assertEqual(fields, {"code": "x", "language": "py"})

    def test_files_of_every_kind(self):
        file = FileInfo("f" * 21, "s" * 21, "a.csv", 1, "text/csv", "skill", "r1", 2)
        self.assertEqual(file.named("b.csv").reference(), {
            "id": "f" * 21, "storage_session_id": "s" * 21, "name": "b.csv", "kind": "skill", "resource_id": "r1", "version": 2,
        })
        self.assertEqual(InlineFile("t", "é").reference(), {"name": "t", "content": "é"})
        self.assertEqual(InlineFile("b", b"\xff").reference(), {"name": "b", "content": "/w==", "encoding": "base64"})
        self.assertEqual(requests.download(file).path, f"/download/{'s' * 21}/{'f' * 21}?kind=skill&id=r1&version=2")

    def test_versions_keep_their_digits(self):
        texts = [(2, "2"), (2.0, "2"), (-3, "-3"), (999999, "999999"), (1000000, "1000000"), (20261123, "20261123"),
                 (20261123.0, "20261123"), (123456789012345, "123456789012345"), (12345.67, "12345.67"), (1.0000001, "1.0000001"),
                 (0.00001, "0.00001"), (-2.5, "-2.5")]
        for version, text in texts:
            file = FileInfo("f" * 21, "s" * 21, "a.csv", 1, "text/csv", "skill", "r1", version)
            self.assertTrue(requests.download(file).path.endswith(f"?kind=skill&id=r1&version={text}"), text)
            self.assertEqual(upload_form("skill", "r1", version, False), {"kind": "skill", "id": "r1", "version": text})

    def test_an_owner_without_its_kind_is_refused(self):
        for owner in (("agent-1", None), (None, 2)):
            with self.assertRaisesRegex(ValueError, "give its kind"):
                upload_form("user", *owner, False)

    def test_one_string_is_no_list_of_arguments(self):
        with self.assertRaises(TypeError):
            Svc("http://h").run("x", args="abc")

    def test_a_form_is_as_long_as_it_says(self):
        for source in (b"", b"abc" * 1000):
            form = Form({"kind": "user"}, 'we"ird/\r\né.csv', source, "text/csv")
            body = b"".join(form.blocks())
            self.assertEqual(len(body), form.length)
            self.assertIn(b"filename*=UTF-8''we%22ird%2F%0D%0A%C3%A9.csv\r\n", body)
            self.assertIn(b"\r\n\r\n" + source + b"\r\n--", body)

    def test_a_content_type_cannot_add_headers(self):
        for content_type in ("", "text/csv\r\nX: y", "text/é"):
            with self.assertRaises(ValueError, msg=content_type):
                Form({}, "n", b"", content_type)


def price(item: str, count: int = 1, *, note: Optional[str] = None, tags: List[str] = [], more: Dict[str, int] = {}) -> float:
    """Price of an item."""
    return count


class ToolDefinitions(unittest.TestCase):
    def test_a_signature_becomes_a_schema(self):
        [found] = definitions(checked_tools({"price": price}))
        self.assertEqual(found, {
            "name": "price",
            "description": "Price of an item.",
            "parameters": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"},
                               "tags": {"type": "array"}, "more": {"type": "object"}},
                "required": ["item"],
                "additionalProperties": False,
            },
        })

    def test_what_is_told_goes_first(self):
        schema = {"type": "object", "properties": {}}
        [found] = definitions(checked_tools({"p": Tool(lambda **all: all, "Any.", schema)}))
        self.assertEqual(found, {"name": "p", "description": "Any.", "parameters": schema})
        [found] = definitions(checked_tools({"p": lambda **all: all}))
        self.assertTrue(found["parameters"]["additionalProperties"])

    def test_functions_that_cannot_be_called_by_keyword_are_refused(self):
        with self.assertRaises(TypeError):
            definitions(checked_tools({"p": eval("lambda x, /: x")}))
        with self.assertRaises(TypeError):
            checked_tools({"p": "no function"})

    def test_results_that_are_not_json_fail_the_call(self):
        call = ToolCall("call_001", "p", {})
        cycle: List[object] = []
        cycle.append(cycle)
        for value in (object(), float("nan"), cycle, {1, 2}, b"x"):
            self.assertTrue(succeeded(call, value)["is_error"])
        self.assertEqual(succeeded(call, {"a": [1, None]}), {"call_id": "call_001", "result": {"a": [1, None]}})

    def test_failures_tell_the_exception_and_no_more_than_a_page(self):
        call = ToolCall("call_001", "p", {})
        self.assertEqual(failed(call, ValueError())["error_message"], "ValueError")
        self.assertEqual(len(failed(call, ValueError("x" * 100_000))["error_message"]), 4096)
        with self.assertRaises(LookupError):
            invoke({}, call)


if __name__ == "__main__":
    unittest.main()
