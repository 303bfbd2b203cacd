/**
 * The runner's calls to the egress gateway, with the run's grant on each. Transient failures are retried a few times with pauses. A lasting failure
 * becomes `input_unavailable` or `storage_unavailable`, which name the file.
 */
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type BatchRequest,
  CHECKED_HEADER,
  decodeInputBatch,
  type ErrorCode,
  GRANT_HEADER,
  type InputBatch,
  type ListedObject,
  listedObjectSchema,
  MAX_BATCH_ANSWER_BYTES,
  ORIGINAL_FILENAME_HEADER,
  READ_ONLY_HEADER,
  ServiceError,
  STORING_MS,
} from "@svc/contracts";
import {
  answerBytes,
  InnerClient,
  type InnerRequest,
  type InnerResponse,
  innerError,
  type Span,
  type TlsIdentity,
} from "@svc/service-kit";
import { z } from "zod";
import type { Reference } from "./execution/program.ts";

/** Pauses between attempts to read an input. There are few, because the caller can send the request again. */
const READ_PAUSES_MS = [100, 400, 1000, 1500];
/** Pauses between attempts to store an output. There are more, because a failure loses the output and a file server may be restarting. */
const STORE_PAUSES_MS = [...READ_PAUSES_MS, 3000, 4000];

/** The file server's status for a damaged object. */
const DAMAGED = 500;

/** An input without `size` and `body` still has the entity tag that was sent. */
export type FetchedInput = { etag: string; readOnly: boolean } & ({ size: number; body: Readable } | object);

export interface RunGateway {
  grant: string;
  requestId: string;
  signal: AbortSignal;
  /** The span whose children are the run's stages; absent when nothing is traced. */
  trace?: Span | undefined;
}

export class GatewayClient {
  readonly client: InnerClient;
  /** Runs whose last call failed after all retries: their next calls are not retried, or each file would wait as long as the first. */
  readonly #inVain = new WeakSet<RunGateway>();

  constructor(baseUrl: string, tls?: TlsIdentity) {
    this.client = new InnerClient({ baseUrl, unreachable: "storage_unavailable", tls });
  }

  /** Opens an input, unless it still has the entity tag `known`. */
  async fetchInput(run: RunGateway, file: Reference, known?: string): Promise<FetchedInput> {
    const path = pathOf(file);
    const headers = known === undefined ? {} : { "if-none-match": `"${known}"` };
    const response = await this.#send(run, { method: "GET", path, headers }, file);
    const etag = String(response.headers.etag ?? "").replace(/^"|"$/g, "");
    const readOnly = response.headers[READ_ONLY_HEADER] === "true";
    if (response.statusCode === 304) {
      await response.body.dump();
      return { etag, readOnly };
    }
    const size = Number(response.headers["content-length"]);
    if (!Number.isSafeInteger(size) || size < 0) throw inputUnavailable(file);
    return { size, etag, readOnly, body: response.body };
  }

  /** Finds out why the bytes of an input broke off. Storage checks the object. If it is whole, or nobody can tell, storage counts as away. */
  async whyBroken(run: RunGateway, file: Reference, cause: unknown): Promise<ServiceError> {
    const call = { method: "GET" as const, path: pathOf(file), headers: { [CHECKED_HEADER]: "true" } };
    try {
      leave((await this.#send(run, call, file)).body);
    } catch (error) {
      run.signal.throwIfAborted();
      return error as ServiceError;
    }
    return unreachable(file, cause);
  }

  /** Fetches small inputs and directories in one answer. Undefined: there is no answer, whatever the reason; each is then fetched on its own. */
  async fetchBatch(run: RunGateway, batch: BatchRequest): Promise<InputBatch | undefined> {
    try {
      const response = await this.client.send({
        method: "POST",
        path: "/inputs",
        headers: { "content-type": "application/json", [GRANT_HEADER]: run.grant },
        body: JSON.stringify(batch),
        requestId: run.requestId,
        signal: run.signal,
      });
      return await this.client.read(response, async (answer) =>
        decodeInputBatch(await answerBytes(answer, MAX_BATCH_ANSWER_BYTES), batch),
      );
    } catch {
      return undefined;
    }
  }

  /** Lists what the session of an input offers: the enumerated inputs and its `.dirkeep` files. */
  async list(run: RunGateway, file: Reference): Promise<ListedObject[]> {
    const path = `/sessions/${encodeURIComponent(file.storage_session_id)}/objects`;
    const response = await this.#send(run, { method: "GET", path }, file);
    return z.array(listedObjectSchema).parse(JSON.parse((await answerBytes(response)).toString("utf8")));
  }

  /** Stores an output. `open` opens the bytes again for each attempt. */
  async store(
    run: RunGateway,
    session: string,
    file: { id: string; name: string; size: number; contentType: string },
    open: () => Promise<InnerRequest["body"]>,
  ): Promise<void> {
    const path = `/sessions/${encodeURIComponent(session)}/objects/${file.id}`;
    const make = async () => ({
      method: "PUT" as const,
      path,
      timeoutMs: STORING_MS.answer,
      headers: {
        "content-length": String(file.size),
        "content-type": file.contentType,
        [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(file.name),
      },
      body: await open(),
    });
    const response = await this.#repeat(run, STORE_PAUSES_MS, make);
    if (response.statusCode !== 200) throw await innerError(response);
    await response.body.dump();
  }

  async #send(run: RunGateway, call: InnerRequest, file: Reference): Promise<InnerResponse> {
    const response = await this.#repeat(run, READ_PAUSES_MS, async () => call).catch((error: unknown) => {
      run.signal.throwIfAborted();
      throw unreachable(file, error);
    });
    if (response.statusCode === 200 || response.statusCode === 304) return response;
    const error = await innerError(response);
    // Only these are answers about the object; a refused grant says nothing of it, and the next attempt has another grant.
    const isOfObject = error.code === "file_not_found" || response.statusCode === DAMAGED;
    throw isOfObject ? inputUnavailable(file, error) : unreachable(file, error);
  }

  /**
   * Retries a call without an answer, or with a 5xx which says that storage or the store is briefly away. Stops early when attempts take long.
   */
  async #repeat(
    run: RunGateway,
    pausesMs: readonly number[],
    make: () => Promise<InnerRequest>,
  ): Promise<InnerResponse> {
    const end = performance.now() + STORING_MS.answer;
    for (let attempt = 0; ; attempt++) {
      const isLast = this.#inVain.has(run) || performance.now() > end;
      const pause = isLast ? undefined : pausesMs[attempt];
      const call = await make();
      try {
        const response = await this.client.send({
          ...call,
          headers: { ...call.headers, [GRANT_HEADER]: run.grant },
          requestId: run.requestId,
          signal: run.signal,
        });
        if (response.statusCode < 502 || pause === undefined) {
          if (response.statusCode >= 502) throw await innerError(response);
          this.#inVain.delete(run);
          return response;
        }
        await response.body.dump();
      } catch (error) {
        if (pause === undefined) this.#inVain.add(run);
        if (pause === undefined || run.signal.aborted) throw error;
      }
      await sleep(pause, undefined, { signal: run.signal });
    }
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

const pathOf = ({ storage_session_id, id }: Reference) =>
  `/sessions/${encodeURIComponent(storage_session_id)}/objects/${encodeURIComponent(id)}`;

/** Discards the rest of a body. Its stream reports that as an error, which would end the process if nobody listened. */
export function leave(body: Readable, reason?: Error): void {
  body.once("error", () => undefined).destroy(reason);
}

const unreachable = (file: Reference, cause: unknown) =>
  inputProblem("storage_unavailable", file, "cannot be fetched now", cause);

export function inputUnavailable(file: Reference, cause?: unknown): ServiceError {
  return inputProblem("input_unavailable", file, "is missing or damaged", cause);
}

function inputProblem(code: ErrorCode, { name, at }: Reference, problem: string, cause: unknown) {
  const text = `${JSON.stringify(name)} ${problem}`;
  return new ServiceError(code, `The input ${text}.`, {
    details: [{ path: `files[${at}].name`, problem: text }],
    cause,
  });
}
