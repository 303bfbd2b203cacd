/**
 * From the runner's answer to the public one. References are mapped by name to what the caller sent: ids that the runner
 * states for inputs are never believed. Pure.
 */
import type { ExecuteResponse, Job, OutputFile, RunnerFile } from "@svc/contracts";

export function publicAnswer(job: Job, response: ExecuteResponse, queueMs: number): Record<string, unknown> {
  const { session_state_persisted: _p, session_state_restore_failed: _r, files, timings, ...rest } = response;
  return {
    ...rest,
    session_id: job.session_id,
    files: publicFiles(job, files),
    timings: { queue_ms: Math.round(queueMs * 1000) / 1000, ...timings },
  };
}

export function publicFiles(job: Job, files: readonly RunnerFile[]): OutputFile[] {
  const inputs = new Map(job.files.map((file) => [file.name, file]));
  const inherited = new Set(files.filter((file) => file.inherited).map(({ name }) => name));
  const produced = files
    .filter((file) => !file.inherited)
    .map((file): OutputFile => {
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
      };
    });
  const unchanged = job.files
    .filter(({ name }) => inherited.has(name))
    .map((file): OutputFile => ({ ...file, inherited: true }));
  return [...produced, ...unchanged];
}
