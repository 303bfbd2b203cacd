import { describe, expect, it } from "vitest";
import { sessionName, sessionNotes } from "../../src/exec/session.ts";

describe("the name of a session", () => {
  it.each(["a", "chat-7.b_c:D", "x".repeat(128)])("is taken as it is: %s", (name) => {
    expect(sessionName(name)).toBe(name);
  });

  it.each(["", "a b", "a/b", "ä", "x".repeat(129), "a\n"])("is refused when it is none: %j", (name) => {
    expect(() => sessionName(name)).toThrow(
      `--session must have 1 to 128 of A-Z a-z 0-9 . _ : -, not ${JSON.stringify(name)}`,
    );
  });
});

describe("the notes on a session", () => {
  const kept = { session_state_persisted: true, session_state_restore_failed: false };
  it("are none when the next run continues", () => {
    expect(sessionNotes("s", kept)).toEqual([]);
  });

  it.each([
    [{}, "this service keeps no sessions"],
    [{ ...kept, session_state_persisted: false }, "session s was not saved: the next run begins with"],
    [
      { ...kept, session_state_persisted: false, session_state_conflict: true },
      "another run of it ended first",
    ],
    [
      { session_state_persisted: false, session_state_restore_failed: true },
      "session s could not be restored",
    ],
  ])("are one line when it does not: %j", (outcome, words) => {
    const notes = sessionNotes("s", outcome);
    expect(notes).toEqual([expect.stringContaining(words)]);
    expect(notes[0]).not.toContain("\n");
  });
});
