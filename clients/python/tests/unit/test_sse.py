"""The parser of event streams: any split of the bytes gives the same events, and nothing grows without bound."""

import unittest

from svc_client._base import InvalidAnswer
from svc_client._sse import EventParser

STREAM = (
    b"\xef\xbb\xbf:\n\nevent: stdout\ndata: {\"text\": \"\xc3\xa9\"}\n\n"
    b"data:no space\r\ndata\r\ndata:  two spaces\r\n\r\n"
    b"event: empty\n\nid: 7\nretry: 10\nunknown: x\ndata: a:b\r\revent: last\rdata: z\r\n\n"
    b"data: cut off"
)
EVENTS = [
    ("stdout", b'{"text": "\xc3\xa9"}'),
    ("message", b"no space\n\n two spaces"),
    ("message", b"a:b"),
    ("last", b"z"),
]


def parse(pieces, limit=1000):
    parser = EventParser(limit)
    return [tuple(event) for piece in pieces for event in parser.feed(piece)]


class Splits(unittest.TestCase):
    def test_one_piece(self):
        self.assertEqual(parse([STREAM]), EVENTS)

    def test_every_split_in_two(self):
        for at in range(len(STREAM) + 1):
            self.assertEqual(parse([STREAM[:at], STREAM[at:]]), EVENTS, at)

    def test_pieces_of_every_length(self):
        for length in range(1, 9):
            pieces = [STREAM[at : at + length] for at in range(0, len(STREAM), length)]
            self.assertEqual(parse(pieces), EVENTS, length)

    def test_empty_pieces_change_nothing(self):
        self.assertEqual(parse([piece for byte in STREAM for piece in (b"", bytes([byte]))]), EVENTS)


class Bounds(unittest.TestCase):
    def test_an_event_of_the_limit_passes_and_a_larger_one_does_not(self):
        block = b"data: " + b"x" * 92 + b"\n\n"
        self.assertEqual(len(parse([block], 100)), 1)
        self.assertEqual(len(parse([block] * 5, 100)), 5)
        with self.assertRaises(InvalidAnswer):
            parse([block], 99)

    def test_a_line_without_end_is_refused(self):
        with self.assertRaises(InvalidAnswer):
            parse([b"x" * 60] * 2, 100)

    def test_endless_lines_of_one_event_are_refused(self):
        for line in (b"data:\n", b"event: x\n", b"id: 1\n", b"data: x\n:\n"):
            with self.assertRaises(InvalidAnswer, msg=line):
                parse([line] * 1000, 100)

    def test_comments_between_events_may_go_on_for_ever(self):
        self.assertEqual(parse([b":\n\n"] * 1000 + [b": alone\n"] * 1000 + [b"data: x\n\n"], 100), [("message", b"x")])


if __name__ == "__main__":
    unittest.main()
