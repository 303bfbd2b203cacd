/**
 * Turns the runner's answer into the public one. References are mapped by name to what the caller sent: the runner's ids of inputs are
 * never trusted, and the id and name of an output must be well-formed. Pure.
 */
import {
  fileNameProblem,
  isId,
  type Job,
  type OutputFile,
  type RoundResponse,
  type RunnerFile,
  ServiceError,
  WIDEST_NAME_LIMITS,
} from "@svc/contracts";

/** The answer without its session fields. A pause passes unchanged, except for the session id and the time in the queue. */
export function publicAnswer(job: Job, response: RoundResponse, queueMs: number): Record<string, unknown> {
  const queue_ms = Math.round(queueMs * 1000) / 1000;
  if ("paused" in response) return { ...response, session_id: job.session_id, timings: { queue_ms } };
  const {
    session_state_persisted: _p,
    session_state_restore_failed: _r,
    session_snapshot: _s,
    session_state_dropped: _d,
    files,
    timings,
    ...rest
  } = response;
  return {
    ...rest,
    session_id: job.session_id,
    files: publicFiles(job, files),
    timings: { queue_ms, ...timings },
  };
}

export function publicFiles(job: Job, files: readonly RunnerFile[]): OutputFile[] {
  const inputs = new Map(job.files.map((file) => [file.name, file]));
  const inherited = new Set(files.filter((file) => file.inherited).map(({ name }) => name));
  const produced = files
    .filter((file) => !file.inherited)
    .map((file): OutputFile => {
      const { size, content_type } = file;
      const isWhole = size !== undefined && content_type !== undefined;
      if (!isId(file.id) || fileNameProblem(file.name, WIDEST_NAME_LIMITS) !== undefined || !isWhole) {
        throw new ServiceError("sandbox_execution_failed", undefined, {
          cause: "the runner states an output that cannot be",
        });
      }
      const input = file.modified_from === undefined ? undefined : inputs.get(file.name);
      return {
        id: file.id,
        name: file.name,
        storage_session_id: job.session_id,
        kind: "user",
        resource_id: job.principal.userId,
        ...(input === undefined
          ? {}
          : { modified_from: { id: input.id, storage_session_id: input.storage_session_id } }),
        size,
        content_type,
      };
    });
  const unchanged = job.files
    .filter(({ name }) => inherited.has(name))
    .map((file) => ({ ...file, inherited: true }) as OutputFile);
  return [...produced, ...unchanged];
}
