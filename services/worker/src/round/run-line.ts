/** One log line for each run or round that a worker drove, with the ids of its request and execution. */
import { factsOfAnswer, type Job, type JobResult, outcomeOfError, shownMs } from "@svc/contracts";
import { type Log, traceIdOf } from "@svc/service-kit";

/** How a job ended, for the metrics: a cancelled one did not fail. */
export type JobEnd = "completed" | "failed" | "cancelled";

export function endOf(result: JobResult): JobEnd {
  if (result.ok) return "completed";
  return outcomeOfError(result.error) === "cancelled" ? "cancelled" : "failed";
}

/** Call it when the job starts, and the returned function when the job has ended. */
export function runLine(log: Log, job: Job, queueMs: number): (result: JobResult) => void {
  const began = performance.now();
  const { request_id, execution_id: exec_id, language } = job;
  const trace_id = traceIdOf(job.trace);
  log.debug({ request_id, exec_id, trace_id, language, queue_ms: queueMs }, "run begins");
  return (result) => {
    // A discard runs nothing.
    if (job.discard !== undefined) return;
    const facts = result.ok
      ? factsOfAnswer(result.answer)
      : { outcome: outcomeOfError(result.error), error: result.error.code };
    const ms = shownMs(performance.now() - began);
    log.info({ request_id, exec_id, trace_id, language, ms, queue_ms: queueMs, ...facts }, "run");
  };
}
