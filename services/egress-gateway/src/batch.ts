/**
 * Reads several authorised objects and lists sessions in one call. Each item is checked and charged as if requested separately. Items that the
 * file server left out are not charged, but an answered call costs at least one read. A call costs all of them when its runner disconnects.
 */

import type { Grant } from "@svc/capabilities";
import {
  type BatchRequest,
  decodeInputBatch,
  INPUT_BATCH_TYPE,
  type InputBatch,
  MAX_BATCH_ANSWER_BYTES,
  missingIn,
  ServiceError,
} from "@svc/contracts";
import {
  answerBytes,
  clientGone,
  errorText,
  type FastifyReply,
  type FastifyRequest,
  type InnerClient,
} from "@svc/service-kit";
import type { Admission } from "./admission.ts";
import type { Authority } from "./authority.ts";
import type { GatewayDeps } from "./deps.ts";

export async function readBatch(
  { authority, admission, fileServer }: Pick<GatewayDeps, "authority" | "admission" | "fileServer">,
  request: FastifyRequest<{ Body: BatchRequest }>,
  reply: FastifyReply,
): Promise<Buffer> {
  const { grant, subject: wanted } = await admission.admit(
    request.headers,
    (held) => withIds(authority, held, request.body),
    (held) => ({ kind: "reads", count: readsOf(held) }),
  );
  const signal = clientGone(reply, new ServiceError("execution_cancelled"));
  const reads = readsOf(wanted);
  let unread = reads;
  try {
    const { bytes, batch } = await fetched(fileServer, wanted, request.id, signal);
    unread = Math.min(missingIn(batch), reads - 1);
    reply.type(INPUT_BATCH_TYPE);
    return bytes;
  } finally {
    if (!signal.aborted) await giveBack(admission, grant, unread, request);
  }
}

/** A failure changes neither the answer nor the error of the call: the reads stay charged. */
async function giveBack(
  admission: Admission,
  grant: Grant,
  unread: number,
  request: FastifyRequest,
): Promise<void> {
  try {
    await admission.unread(grant, unread);
  } catch (error) {
    request.log.error(
      { request_id: request.id, err: errorText(error) },
      "refunding the reads of a batch failed; they stay charged",
    );
  }
}

const readsOf = ({ files, directories }: BatchRequest) => Math.max(files.length + directories.length, 1);

/** The same request with real ids, when the grant covers all of it. */
function withIds(authority: Authority, grant: Grant, { files, directories }: BatchRequest): BatchRequest {
  return {
    files: files.map(({ storage_session_id, id }) => {
      const session = authority.session(grant, storage_session_id, "read");
      const object = authority.object(grant, session, id);
      return { storage_session_id: object.session_id, id: object.object_id };
    }),
    directories: directories.map((handle) => authority.session(grant, handle, "read").session_id),
  };
}

async function fetched(
  fileServer: InnerClient,
  wanted: BatchRequest,
  requestId: string,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; batch: InputBatch }> {
  const response = await fileServer.send({
    method: "POST",
    path: "/inputs",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(wanted),
    requestId,
    signal,
  });
  return fileServer.read(response, async (answer) => {
    const bytes = await answerBytes(answer, MAX_BATCH_ANSWER_BYTES);
    return { bytes, batch: decodeInputBatch(bytes, wanted) };
  });
}
