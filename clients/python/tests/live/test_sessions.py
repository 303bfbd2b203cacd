"""Persistent sessions, and who may see them, at a service with sessions and API keys."""

import unittest

from svc_client import errors
from tests.live.target import async_client, client, new_marker


class Sessions(unittest.TestCase):
    def test_a_session_from_its_first_run_to_its_end(self):
        name = new_marker()
        first = client().run("n = 42\nopen('notes.txt', 'w').write('kept')", session=name)
        self.assertTrue(first.raw["session_state_persisted"])
        code = "print(n, open('notes.txt').read())"
        self.assertEqual(client().run(code, session=name).stdout, "42 kept\n")
        self.assertEqual(client().run(code, session_id=first.session_id).stdout, "42 kept\n")
        [session] = [one for one in client().sessions.list() if one.hint == name]
        self.assertEqual(session.language_last, "python")
        self.assertGreater(session.size, 0)
        [file] = client().sessions.files(session.id)
        self.assertEqual((file.name, file.size), ("notes.txt", 4))
        self.assertIsNone(client().sessions.delete(session.id))
        self.assertNotIn(name, [one.hint for one in client().sessions.list()])
        with self.assertRaises(errors.SvcError) as caught:
            client().sessions.delete(session.id)
        self.assertEqual(caught.exception.status, 404)


class AsyncSessions(unittest.IsolatedAsyncioTestCase):
    async def test_a_session(self):
        name = new_marker()
        await async_client().run("open('a', 'w')", session=name)
        [session] = [one for one in await async_client().sessions.list() if one.hint == name]
        self.assertEqual([file.name for file in await async_client().sessions.files(session.id)], ["a"])
        await async_client().sessions.delete(session.id)


class Credentials(unittest.TestCase):
    def test_no_wrong_and_missing_key(self):
        for token in (None, "svc_" + "A" * 43, "no-key"):
            with self.assertRaises(errors.Unauthorized) as caught:
                client(token=token).run("print(1)")
            self.assertEqual(caught.exception.status, 401)
            self.assertNotIn(str(token), str(caught.exception))


if __name__ == "__main__":
    unittest.main()
