/** A round of a run that continues a persistent session: it begins with the session's state, and may leave the next one. */
import type { Deadlines, Job } from "@svc/contracts";
import { leftBy, persistSession, sessionFields, withSnapshot } from "../sessions/sessions.ts";
import { endedRun, endOf, type ProcessDeps, type Round } from "./round.ts";

export async function sessionRound(
  job: Job,
  deadlines: Deadlines,
  signal: AbortSignal,
  { sessions, grants, runner, tell }: ProcessDeps,
): Promise<Round> {
  const { request_id } = job;
  const run = await sessions?.begin(job);
  const begun = run === undefined ? job : withSnapshot(job, run);
  const { grant } = await grants.take(begun, deadlines, signal, run);
  try {
    const response = endedRun(
      await runner.execute(begun, grant, signal, { session: persistSession(run), tell }),
    );
    // The client has left, or another worker has the job: this run must not change the session.
    signal.throwIfAborted();
    const left = run && leftBy(run, response);
    const settled = run && (await sessions?.settle(run, left, request_id, signal));
    const ofSession = sessionFields(settled, response);
    sessions?.count(ofSession, left);
    if (run?.from === undefined) grants.revoke(grant.grant_id, "completed", request_id);
    else grants.revokeRestored(grant.grant_id, response.session_state_restore_failed, request_id);
    return { job, response, ofSession };
  } catch (error) {
    grants.revoke(grant.grant_id, endOf(signal), request_id);
    throw error;
  }
}
