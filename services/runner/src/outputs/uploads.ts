/**
 * Stores the planned outputs through the gateway, several at once. All uploads end before the answer. A file that cannot be stored is reported as
 * omitted and counted in `artifact_delivery`. A file without room in its user's quota is not counted there: running the program again would not
 * help. Nothing vanishes silently.
 */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { newId, quotaOf, type RunnerFile } from "@svc/contracts";
import type { JailRun } from "@svc/jail-client";
import { lookup } from "mime-types";
import type { GatewayClient, RunGateway } from "../gateway.ts";
import type { OmittedFile, PlannedUpload } from "./outputs.ts";

/** Files up to this size are read whole, so that the next one can be fetched while they travel. */
const BUFFERED_BYTES = 1 << 20;

export interface UploadDeps {
  gateway: Pick<GatewayClient, "store">;
  run: RunGateway;
  jail: Pick<JailRun, "fetch">;
  outputSession: string;
  concurrency: number;
  onFailure: (error: unknown) => void;
}

export interface UploadReport {
  files: RunnerFile[];
  omitted: OmittedFile[];
  attempted: number;
  failed: number;
}

export async function storeOutputs(plan: readonly PlannedUpload[], deps: UploadDeps): Promise<UploadReport> {
  const stored: (RunnerFile | undefined)[] = plan.map(() => undefined);
  const omitted: (OmittedFile | undefined)[] = plan.map(() => undefined);
  const running = new Set<Promise<void>>();
  // Never rejects: a caller that awaits one upload would miss the failure of another.
  const settle = async (at: number, upload: Promise<RunnerFile>) => {
    try {
      stored[at] = await upload;
    } catch (error) {
      const { name = "" } = plan[at] ?? {};
      const quota = quotaOf(error);
      omitted[at] =
        quota === undefined ? { name, reason: "upload_failed" } : { name, reason: "quota", quota };
      if (quota === undefined && !deps.run.signal.aborted) deps.onFailure(error);
    }
  };
  try {
    for (const [at, file] of plan.entries()) {
      while (running.size >= deps.concurrency) await Promise.race(running);
      deps.run.signal.throwIfAborted();
      const small = file.size <= BUFFERED_BYTES;
      const bytes = small ? await readSmall(file, deps) : undefined;
      const upload = settle(at, store(file, bytes, deps)).finally(() => running.delete(upload));
      running.add(upload);
      if (!small || bytes === undefined) await upload;
    }
  } finally {
    await Promise.all(running);
  }
  deps.run.signal.throwIfAborted();
  const files = stored.filter((file) => file !== undefined);
  const lost = omitted.filter((file) => file !== undefined);
  const failed = lost.filter(({ reason }) => reason === "upload_failed").length;
  return { files, omitted: lost, attempted: files.length + failed, failed };
}

async function readSmall(file: PlannedUpload, { jail }: UploadDeps): Promise<Buffer | undefined> {
  if (file.number === undefined) return Buffer.alloc(0);
  const fetched = await jail.fetch(file.number);
  return fetched === undefined ? undefined : buffer(fetched.body);
}

async function store(file: PlannedUpload, bytes: Buffer | undefined, deps: UploadDeps): Promise<RunnerFile> {
  const id = newId();
  const contentType = lookup(file.name) || "application/octet-stream";
  const head = { id, name: file.name, size: bytes?.length ?? file.size, contentType };
  if (bytes !== undefined) await deps.gateway.store(deps.run, deps.outputSession, head, async () => bytes);
  else await storeStream(file, head, deps);
  const from = file.modifiedFrom;
  return {
    id,
    name: file.name,
    storage_session_id: deps.outputSession,
    ...(from === undefined
      ? {}
      : { modified_from: { id: from.id, storage_session_id: from.storage_session_id } }),
    size: head.size,
    content_type: contentType,
  };
}

/** Stores a large file while the jail sends it. The jail's bytes are read to their end, or they would be taken for the next file. */
async function storeStream(
  file: PlannedUpload,
  head: { id: string; name: string; size: number; contentType: string },
  { gateway, run, jail, outputSession }: UploadDeps,
): Promise<void> {
  let sent: AsyncGenerator<Buffer> | undefined;
  const drain = async () => {
    if (sent !== undefined) for await (const _ of sent);
  };
  try {
    await gateway.store(run, outputSession, head, async () => {
      await drain();
      const fetched = file.number === undefined ? undefined : await jail.fetch(file.number);
      if (fetched === undefined) throw new Error("the jail cannot read the file");
      sent = fetched.body;
      return Readable.from(unended(sent), { objectMode: false });
    });
  } finally {
    await drain();
  }
}

/** The same bytes; leaving early does not end the source. */
async function* unended(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  for (let step = await source.next(); !step.done; step = await source.next()) yield step.value;
}
