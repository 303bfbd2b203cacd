/** The spans of a job on a worker: how long it waited in the queue, and its run. */
import { factsOfAnswer, findLanguage, type Job, type JobResult, outcomeOfError } from "@svc/contracts";
import { type Attributes, runAttributes, type Span, type Tracing } from "@svc/service-kit";

/** Undefined: the job's request is not traced. */
export function traceJob(tracing: Tracing, job: Job, queueMs: number): Span | undefined {
  const { trace, execution_id: exec_id, language } = job;
  const span = tracing.join("worker.run", "consumer", trace, {
    "messaging.system": "bullmq",
    "messaging.operation.type": "process",
    "messaging.destination.name": `${findLanguage(language)?.queue ?? "other"}-queue`,
    ...runAttributes({ exec_id, language }),
    ...roundOf(job),
  });
  span?.precededBy("queue", queueMs);
  return span;
}

/** Which kind of round of a program with tools the job is. */
function roundOf({ ptc, resume }: Job): Attributes {
  if (resume !== undefined) return { "svc.round": "resume" };
  if (ptc === undefined) return {};
  return { "svc.round": ptc.mode === "replay" ? "replay" : "start" };
}

export function endJob(span: Span, result: JobResult): void {
  if (result.ok) {
    span.end(runAttributes(factsOfAnswer(result.answer)));
    return;
  }
  const { code, status } = result.error;
  span.end(runAttributes({ outcome: outcomeOfError(result.error), error: code }), status >= 500);
}
