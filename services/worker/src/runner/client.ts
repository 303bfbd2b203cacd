/**
 * The worker's calls to runners: execute, resume and discard (signed), health, runtimes. Closing the connection kills the
 * run. A paused program is on the runner that paused it and nowhere else. Nothing that a runner says is believed: its answers
 * are bounded in bytes, depth and fields, and the address of a paused program is one of the configured ones.
 */
import { parseSigningKey } from "@svc/capabilities";
import {
  boundsAround,
  EVENT_LINES,
  type ExecuteRequest,
  inRequestOrder,
  type Job,
  LANGUAGES,
  MANIFEST_HEADER,
  type ProgrammaticJob,
  type RecordedCall,
  type RegisteredGrant,
  type RoundResponse,
  type RuntimeInfo,
  roundResponseSchema,
  runtimeInfoSchema,
  ServiceError,
  type TraceContext,
} from "@svc/contracts";
import type { Config, PeerAnswer, TlsIdentity, Tracing } from "@svc/service-kit";
import { askPeer, endFailed, InnerClient, jsonAnswer, parsedVariable } from "@svc/service-kit";
import { z } from "zod";
import { discardManifest } from "./discard-request.ts";
import { readEventLines, type TellEvent } from "./event-lines.ts";
import { requestSigner, type SignRequest } from "./signed-request.ts";

const DISCARD_MS = 5000;
/** Of a list of runtimes. */
const MAX_RUNTIMES_BYTES = 1024 * 1024;
/** JSON writes a character with as many bytes for each byte of output, at most. */
const JSON_FACTOR = 6;
const STREAMS = 2;
/** Events tell the output once more, in pieces. */
const EVENTS_FACTOR = 2;
/** What an answer holds besides output: names of files, as many as there may be. */
const MAX_REST_BYTES = 16 * 1024 * 1024;
/** A pause tells of arguments, in a list of calls. */
const ANSWER_BOUNDS = boundsAround(4);

/** A round as it is asked of a runner. */
interface Asked {
  job: Job;
  /** Signed. */
  body: string;
  signal: AbortSignal;
  tell: TellEvent | undefined;
}

export type PersistSession = NonNullable<ExecuteRequest["persist_session"]>;
export type Resume = NonNullable<Job["resume"]>;

export class Runner {
  readonly #client: InnerClient;
  /** By the addresses that runners may advertise. */
  readonly #advertised: ReadonlyMap<string, InnerClient>;
  readonly #maxAnswerBytes: number;
  readonly #sign: SignRequest;
  readonly #signDiscard: (executionId: string) => string;
  readonly #tracing: Tracing | undefined;

  constructor(config: Config, tracing?: Tracing, tls?: TlsIdentity) {
    this.#tracing = tracing;
    const endpoint = rootOf(config.SANDBOX_ENDPOINT);
    this.#client = new InnerClient({ baseUrl: endpoint, unreachable: "sandbox_execution_failed", tls });
    const advertised = [endpoint, ...config.SANDBOX_RUNNER_URLS.map(rootOf)].map(
      (baseUrl) => [baseUrl, new InnerClient({ baseUrl, unreachable: "execution_not_found", tls })] as const,
    );
    this.#advertised = new Map(advertised);
    this.#maxAnswerBytes = STREAMS * JSON_FACTOR * largestOutput(config) + MAX_REST_BYTES;
    const key = parsedVariable("SVC_EXECUTION_MANIFEST_PRIVATE_KEY", config, parseSigningKey);
    const ttl = config.EXECUTION_MANIFEST_TTL_SECONDS;
    this.#sign = requestSigner(key, ttl);
    this.#signDiscard = (executionId) => discardManifest(key, ttl, executionId);
  }

  /** `history`: with a replay, all calls so far. `session`: the session that the run continues. */
  async execute(
    job: Job,
    grant: RegisteredGrant,
    signal: AbortSignal,
    {
      history,
      session,
      tell,
    }: {
      history?: readonly RecordedCall[] | undefined;
      session?: PersistSession | undefined;
      tell?: TellEvent | undefined;
    } = {},
  ): Promise<RoundResponse> {
    const entry = LANGUAGES.find(({ runner }) => runner === job.language)?.entry ?? "main";
    const request = {
      language: job.language,
      version: job.version,
      files: [
        { name: entry, content: job.code },
        ...inRequestOrder(
          grant.payload.files.map((file, at) => withEntity(file, job, at)),
          job.inline?.map(({ at, ...file }) => ({ at, file })),
        ).map((entry) => ("file" in entry ? entry.file : entry)),
      ],
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
      args: job.args,
      env: job.env,
      stdin: job.stdin,
      run_timeout: job.run_timeout,
      run_memory_limit: job.run_memory_limit,
      exec_id: job.execution_id,
      ptc: job.ptc && ptcOf(job.ptc, grant, history),
      persist_session: session,
    };
    const body = this.#sign(request, grant, { toolSocket: job.ptc !== undefined });
    return this.#round(this.#client, "/execute", { job, body, signal, tell });
  }

  /** A further round of a paused program. `execution_not_found`: it is lost, with its runner or without. */
  async resume(
    job: Job,
    { runner_url, ...round }: Resume,
    grant: RegisteredGrant,
    signal: AbortSignal,
    tell?: TellEvent,
  ): Promise<RoundResponse> {
    const { session_id, output_session_id } = grant.payload;
    const { execution_id, run_timeout } = job;
    const ptc = { execution_id, ...round };
    const request = { session_id, output_session_id, run_timeout, ptc };
    const body = this.#sign(request, grant, { toolSocket: true });
    const path = `/api/v2/executions/${execution_id}/resume`;
    return this.#round(this.#at(runner_url), path, { job, body, signal, tell });
  }

  async #round(client: InnerClient, path: string, asked: Asked): Promise<RoundResponse> {
    const { job } = asked;
    const span = this.#tracing?.join("runner.execute", "client", job.trace);
    try {
      const trace = span?.context ?? job.trace;
      const round = await this.#answer(client, path, asked, trace);
      span?.end();
      return round;
    } catch (error) {
      endFailed(span, error);
      throw error;
    }
  }

  async #answer(
    client: InnerClient,
    path: string,
    { job, body, signal, tell }: Asked,
    trace: TraceContext | undefined,
  ): Promise<RoundResponse> {
    const response = await client.send({
      method: "POST",
      path,
      requestId: job.request_id,
      trace,
      headers: { "content-type": "application/json", ...(tell && { accept: EVENT_LINES }) },
      body,
      signal,
      timeoutMs: 0,
    });
    const maxBytes = this.#maxAnswerBytes;
    const answer = await client.read(response, (received) =>
      tell === undefined || !String(response.headers["content-type"]).startsWith(EVENT_LINES)
        ? jsonAnswer(received, maxBytes, ANSWER_BOUNDS)
        : readEventLines(received.body, (event) => tell(event, job.session_id), {
            maxBytes: EVENTS_FACTOR * maxBytes,
            bounds: ANSWER_BOUNDS,
          }),
    );
    const round = roundResponseSchema.parse(answer);
    if ("paused" in round && !this.#advertised.has(rootOf(round.runner_url))) {
      throw new ServiceError("internal_error", undefined, {
        cause: `a runner advertises ${JSON.stringify(round.runner_url)}, which is not among SANDBOX_RUNNER_URLS`,
      });
    }
    return round;
  }

  /** Ends a paused program; one that is gone already is none the worse. */
  async discard(job: Job, runnerUrl: string): Promise<void> {
    const response = await this.#at(runnerUrl).send({
      method: "DELETE",
      path: `/api/v2/executions/${job.execution_id}`,
      requestId: job.request_id,
      headers: { [MANIFEST_HEADER]: this.#signDiscard(job.execution_id) },
      timeoutMs: DISCARD_MS,
    });
    await response.body.dump();
  }

  /** A program at an address that is not configured is lost. */
  #at(runnerUrl: string): InnerClient {
    const client = this.#advertised.get(rootOf(runnerUrl));
    if (client === undefined) throw new ServiceError("execution_not_found");
    return client;
  }

  /** Its readiness, in its own words. */
  health(): Promise<PeerAnswer | undefined> {
    return askPeer(this.#client, "/api/v2/health");
  }

  async runtimes(): Promise<RuntimeInfo[]> {
    const call = { method: "GET", path: "/api/v2/runtimes", maxBytes: MAX_RUNTIMES_BYTES } as const;
    return z.array(runtimeInfoSchema).parse(await this.#client.json(call));
  }

  async close(): Promise<void> {
    await Promise.all([this.#client, ...this.#advertised.values()].map((client) => client.close()));
  }
}

const rootOf = (url: string) => url.replace(/\/(api\/v2\/?)?$/, "");

/** The largest output that a run of any language may have. */
function largestOutput({ SANDBOX_OUTPUT_MAX_SIZE, SANDBOX_LIMIT_OVERRIDES }: Config): number {
  let largest = SANDBOX_OUTPUT_MAX_SIZE;
  for (const own of Object.values(SANDBOX_LIMIT_OVERRIDES)) {
    const size = (own as { output_max_size?: unknown } | null)?.output_max_size;
    if (typeof size === "number" && size > largest) largest = size;
  }
  return largest;
}

function ptcOf(
  { callback: _, ...ptc }: ProgrammaticJob,
  { callback_token }: RegisteredGrant,
  history: readonly RecordedCall[] | undefined,
): object {
  if (callback_token === undefined) throw new ServiceError("sandbox_setup_failed");
  return { ...ptc, callback_token, history };
}

function withEntity<T extends object>(file: T, job: Job, at: number): T & { entity_id?: string } {
  const entity = job.files[at]?.entity_id;
  return entity === undefined ? file : { ...file, entity_id: entity };
}
