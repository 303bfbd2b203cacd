/**
 * Stores the planned outputs through the gateway, several at once. All uploads end before the answer; a file that cannot
 * be stored is reported as omitted and counted in `artifact_delivery`. Nothing vanishes silently.
 */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { newId, type RunnerFile } from "@svc/contracts";
import type { JailRun } from "@svc/jail-client";
import { lookup } from "mime-types";
import type { GatewayClient, RunGateway } from "./gateway.ts";
import type { OmittedFile, PlannedUpload } from "./outputs.ts";

/** Files up to this size are read whole, so that the next one can be fetched while they travel. */
const BUFFERED_BYTES = 1 << 20;

export interface UploadDeps {
  gateway: GatewayClient;
  run: RunGateway;
  jail: JailRun;
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
  const files: (RunnerFile | undefined)[] = [];
  const omitted: OmittedFile[] = [];
  const running = new Set<Promise<void>>();
  const settle = async (at: number, file: PlannedUpload, upload: Promise<RunnerFile>) => {
    try {
      files[at] = await upload;
    } catch (error) {
      deps.run.signal.throwIfAborted();
      deps.onFailure(error);
      omitted.push({ name: file.name, reason: "upload_failed" });
    }
  };
  for (const [at, file] of plan.entries()) {
    while (running.size >= deps.concurrency) await Promise.race(running);
    const small = file.size <= BUFFERED_BYTES;
    const bytes = small ? await readSmall(file, deps) : undefined;
    const upload = settle(at, file, store(file, bytes, deps)).finally(() => running.delete(upload));
    running.add(upload);
    if (!small) await upload;
  }
  await Promise.all(running);
  return {
    files: files.filter((file): file is RunnerFile => file !== undefined),
    omitted,
    attempted: plan.length,
    failed: omitted.length,
  };
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
  if (bytes !== undefined) {
    await deps.gateway.store(deps.run, deps.outputSession, head, () => bytes);
  } else {
    const fetched = file.number === undefined ? undefined : await deps.jail.fetch(file.number);
    if (fetched === undefined) throw new Error("the jail cannot read the file");
    await storeStream(head, fetched.body, deps);
  }
  const from = file.modifiedFrom;
  return {
    id,
    name: file.name,
    storage_session_id: deps.outputSession,
    ...(from === undefined
      ? {}
      : { modified_from: { id: from.id, storage_session_id: from.storage_session_id } }),
  };
}

/** A large file is stored while it is read. It can be sent once only, so what is left of it is read to its end. */
async function storeStream(
  head: { id: string; name: string; size: number; contentType: string },
  body: AsyncGenerator<Buffer>,
  deps: UploadDeps,
): Promise<void> {
  let opened = false;
  try {
    await deps.gateway.store(deps.run, deps.outputSession, head, () => {
      if (opened) throw new Error("the body was sent already");
      opened = true;
      return Readable.from(body, { objectMode: false });
    });
  } finally {
    for await (const _ of body);
  }
}
