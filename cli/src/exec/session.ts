/** The session that a run of `exec` continues. Pure. */
import { sessionHintSchema } from "@svc/contracts";
import type { ExecResult } from "../client.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";

/** Returns the name unchanged. An invalid name is a Problem. */
export function sessionName(text: string): string {
  const parsed = sessionHintSchema.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new Problem(
    `--session ${parsed.error.issues[0]?.message}, not ${JSON.stringify(text)}`,
    undefined,
    USAGE_EXIT_CODE,
  );
}

type SessionOutcome = Pick<
  ExecResult,
  "session_state_persisted" | "session_state_restore_failed" | "session_state_conflict"
>;

/** What the user must know about the session after a run. Empty when the next run continues from this one. */
export function sessionNotes(name: string, outcome: SessionOutcome): string[] {
  if (outcome.session_state_persisted === undefined) {
    return [
      "this service keeps no sessions: the next run begins with nothing. ./svc up --sessions, or SVC_PERSIST_SESSIONS=true there, turns them on (docs/sessions.md)",
    ];
  }
  if (outcome.session_state_restore_failed)
    return [`session ${name} could not be restored: this run began with nothing, and was not saved`];
  if (outcome.session_state_conflict)
    return [
      `session ${name} was not saved: another run of it ended first, and the next one continues from that`,
    ];
  if (!outcome.session_state_persisted)
    return [`session ${name} was not saved: the next run begins with what this one began with`];
  return [];
}
