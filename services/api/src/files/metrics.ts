/** Counters of public uploads (per file) and downloads (per request). */
import { ServiceError } from "@svc/contracts";
import { counter, type FastifyReply, type Registry, whenClosed } from "@svc/service-kit";

/** refused: the caller's fault. failed: ours. aborted: the client left. */
export type TransferOutcome = "success" | "refused" | "failed" | "aborted";

export interface TransferMetrics {
  uploaded: (outcome: TransferOutcome, files?: number) => void;
  downloaded: (outcome: TransferOutcome) => void;
}

export function transferMetrics(registry: Registry): TransferMetrics {
  const uploads = counter(registry, "svc_file_uploads_total");
  const downloads = counter(registry, "svc_file_downloads_total");
  return {
    uploaded: (outcome, files = 1) => uploads.inc({ outcome }, files),
    downloaded: (outcome) => downloads.inc({ outcome }),
  };
}

export function outcomeOf(error: unknown): TransferOutcome {
  return error instanceof ServiceError && error.status < 500 ? "refused" : "failed";
}

/** Counts a download when its answer has been sent, or can no longer be sent. */
export function countDownload(metrics: TransferMetrics, reply: FastifyReply): void {
  whenClosed(reply, () => {
    if (!reply.raw.writableFinished) metrics.downloaded(reply.raw.errored ? "failed" : "aborted");
    else if (reply.statusCode < 400) metrics.downloaded("success");
    else metrics.downloaded(reply.statusCode < 500 ? "refused" : "failed");
  });
}
