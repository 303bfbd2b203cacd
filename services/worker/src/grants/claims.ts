/** The claims of a grant, which the worker sends to the gateway. Pure. */
import type { Deadlines, GrantClaims, Job, PrefetchRequest } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { SessionRun } from "@svc/session-store";

const GRANT_MARGIN_SECONDS = 60;

const byIds = (left: { sort: string }, right: { sort: string }) => (left.sort < right.sort ? -1 : 1);

export const lifeSeconds = (deadlines: Deadlines) =>
  Math.ceil(deadlines.worker / 1000) + GRANT_MARGIN_SECONDS;

/** `run`: the run of a persistent session; its snapshot is already among the job's files. */
export function claimsOf(job: Job, deadlines: Deadlines, config: Config, run?: SessionRun): GrantClaims {
  const input_files = job.files
    .map(({ id, storage_session_id, name }) => ({
      sort: `${storage_session_id} ${id} ${name}`,
      claim: { id, session_id: storage_session_id, name },
    }))
    .sort(byIds)
    .map(({ claim }) => claim);
  const shared = sharedClaimsOf(job, deadlines, config);
  const snapshot = run && {
    snapshot_object_id: run.to.id,
    max_upload_bytes: shared.max_upload_bytes + config.SVC_SESSION_STATE_MAX_BYTES,
  };
  return {
    ...shared,
    ...snapshot,
    exec_id: job.execution_id,
    input_files,
    read_sessions: [...new Set(input_files.map(({ session_id }) => session_id))].sort(),
    output_session_id: job.session_id,
  };
}

/** The claims that all runs of a principal have in common. */
export function sharedClaimsOf(job: Job, deadlines: Deadlines, config: Config): PrefetchRequest["claims"] {
  return {
    tenant_id: job.principal.tenantId,
    user_id: job.principal.userId,
    session_key: job.output_namespace,
    max_upload_bytes: config.EXECUTION_MANIFEST_MAX_UPLOAD_BYTES,
    max_output_files: config.EXECUTION_MANIFEST_MAX_OUTPUT_FILES,
    max_requests: config.EXECUTION_MANIFEST_MAX_REQUESTS,
    max_tool_calls: config.EXECUTION_MANIFEST_MAX_TOOL_CALLS,
    lifetime_seconds: lifeSeconds(deadlines),
  };
}

/** The job as the grant of a further round needs it: a paused program already has its inputs and its access to tools. */
export const furtherRound = ({ ptc: _, ...job }: Job): Job => ({ ...job, files: [] });

/** Whether a grant for the job depends on its owner alone, so that any prefetched grant of that owner fits. */
export const hasOnlyAnOwner = ({ files, ptc, resume, session }: Job): boolean =>
  files.length === 0 && ptc === undefined && resume === undefined && session === undefined;

/** Jobs of the same owner have the same shared claims, except for the lifetime. */
export const ownerOf = ({ principal, output_namespace }: Job): string =>
  JSON.stringify([principal.tenantId, principal.userId, output_namespace]);
