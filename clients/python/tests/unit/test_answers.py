"""Error bodies as exceptions, the retry rule, and JSON that is not what it should be."""

import json
import unittest

from svc_client import InvalidAnswer, SvcError, errors
from svc_client._answers import Answer, error_of
from svc_client._retry import RetryPolicy
from svc_client._results import result_of
from svc_client._shape import Fields, parse_object
from tests.servers import RESULT, error


def of(status, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_of(Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, data))


class Errors(unittest.TestCase):
    def test_every_code_has_a_class_of_its_own(self):
        for code, kind in errors.BY_CODE.items():
            self.assertIs(type(of(kind.usual_status, error(code))), kind)
            self.assertEqual(kind.code, code)
            self.assertTrue(issubclass(kind, SvcError))

    def test_what_an_error_carries(self):
        details = [{"path": "files[0].name", "problem": "is required"}, {"path": 1}, "x"]
        found = of(429, error("rate_limited", details=details, retry_after_seconds=12, reason="r"))
        self.assertEqual((found.code, found.status, found.request_id, found.retry_after), ("rate_limited", 429, "req-1", 12))
        self.assertEqual([(one.path, one.problem) for one in found.details], [("files[0].name", "is required")])
        self.assertEqual(found.body["reason"], "r")
        self.assertIn("files[0].name: is required", str(found))

    def test_an_unknown_code_is_the_base_class(self):
        found = of(418, error("teapot"))
        self.assertEqual((type(found), found.code, found.status), (SvcError, "teapot", 418))

    def test_the_header_tells_what_the_body_does_not(self):
        body = {"error": "queue_saturated", "message": "m", "request_id": "\x1b[31m"}
        found = of(503, body, x_request_id="from-header", retry_after="3")
        self.assertEqual((found.request_id, found.retry_after), ("from-header", 3))
        self.assertIsNone(of(503, body, x_request_id="a b", retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after)

    def test_what_no_service_of_ours_says(self):
        for body in (b"", b"<html>", b"[]", b"{}", b'{"error": 1, "message": "m"}', b'{"error": "Not A Code", "message": "m"}', b"\xff"):
            found = of(502, body)
            self.assertEqual((type(found), found.status), (InvalidAnswer, 502), body)


class Retries(unittest.TestCase):
    def setUp(self):
        self.policy = RetryPolicy(repeats=2, longest=30.0)

    def delay(self, code, repeats=0, **more):
        return self.policy.delay(of(503, error(code, **more)), repeats)

    def test_only_what_is_safe_is_repeated(self):
        repeated = {code for code in errors.BY_CODE if self.delay(code) is not None}
        self.assertEqual(repeated, {code for code, kind in errors.BY_CODE.items() if kind.repeat == "same"})
        self.assertIn("queue_saturated", repeated)
        self.assertNotIn("rate_limited", repeated)
        self.assertNotIn("internal_error", repeated)

    def test_retry_after_is_honoured_and_never_shortened(self):
        self.assertEqual(self.delay("queue_saturated", retry_after_seconds=30), 30)
        self.assertIsNone(self.delay("queue_saturated", retry_after_seconds=31))

    def test_a_limit_that_a_resume_waits_out_may_last_longer(self):
        limited = of(429, error("rate_limited", retry_after_seconds=31))
        self.assertEqual(self.policy.delay(limited, 0, waits_out=True), 31)
        self.assertLess(self.policy.delay(of(429, error("rate_limited", retry_after_seconds=10**300)), 0, waits_out=True), 1)
        self.assertIsNone(self.policy.delay(limited, 0))
        self.assertIsNone(self.policy.delay(of(503, error("queue_saturated", retry_after_seconds=31)), 0, waits_out=True))
        self.assertIsNone(RetryPolicy(repeats=0).delay(limited, 0, waits_out=True))

    def test_repeats_are_counted_and_come_later_each_time(self):
        first, second = self.delay("queue_saturated"), self.delay("queue_saturated", 1)
        self.assertTrue(0.25 <= first <= 0.5 <= second <= 1.0)
        self.assertIsNone(self.delay("queue_saturated", 2))

    def test_an_error_without_an_answer_is_not_repeated(self):
        self.assertIsNone(self.policy.delay(errors.QueueSaturated("m"), 0))


class HostileJson(unittest.TestCase):
    def test_what_is_no_object_of_json_is_refused(self):
        nested = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        for data in (b"", b"1", b"[]", b"{", b'{"a": NaN}', b'{"a": ' + b"9" * 500 + b"}", nested, b'{"a": "\xff"}'):
            with self.assertRaises(InvalidAnswer, msg=data[:20]):
                parse_object(data)

    def test_every_field_of_a_result_is_checked(self):
        wrong = {"stdout": 1, "files": {}, "code": "0", "limits": None, "wall_time": True, "memory": 1.5, "timings": []}
        for name, value in wrong.items():
            with self.assertRaises(InvalidAnswer) as caught:
                result_of(Fields({**RESULT, name: value}), lambda entry: entry, None)
            self.assertIn(name, str(caught.exception))

    def test_further_fields_are_kept_in_raw(self):
        found = result_of(Fields({**RESULT, "later": 1}), lambda entry: entry, None)
        self.assertEqual((found.raw["later"], found.ok), (1, True))


if __name__ == "__main__":
    unittest.main()
