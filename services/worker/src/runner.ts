/**
 * The worker's calls to the runner: execute, resume and discard (signed), health, runtimes. Closing the connection kills the
 * run. A paused program is on the runner that paused it and nowhere else.
 */
import { parseSigningKey } from "@svc/capabilities";
import {
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
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import { InnerClient, parsedVariable } from "@svc/service-kit";
import { z } from "zod";
import { discardManifest } from "./discard-request.ts";
import { requestSigner, type SignRequest } from "./signed-request.ts";

/** Runners with paused programs whose connections are kept. */
const MAX_ELSEWHERE = 256;
const DISCARD_MS = 5000;

export type Resume = NonNullable<Job["resume"]>;

export class Runner {
  readonly #client: InnerClient;
  readonly #elsewhere = new Map<string, InnerClient>();
  readonly #sign: SignRequest;
  readonly #signDiscard: (executionId: string) => string;

  constructor(config: Config) {
    const baseUrl = config.SANDBOX_ENDPOINT.replace(/\/api\/v2$/, "");
    this.#client = new InnerClient({ baseUrl, unreachable: "sandbox_execution_failed" });
    const key = parsedVariable("SVC_EXECUTION_MANIFEST_PRIVATE_KEY", config, parseSigningKey);
    const ttl = config.EXECUTION_MANIFEST_TTL_SECONDS;
    this.#sign = requestSigner(key, ttl);
    this.#signDiscard = (executionId) => discardManifest(key, ttl, executionId);
  }

  /** `history`: with a replay, all calls so far. */
  async execute(
    job: Job,
    grant: RegisteredGrant,
    signal: AbortSignal,
    history?: readonly RecordedCall[],
  ): Promise<RoundResponse> {
    const entry = LANGUAGES.find(({ runner }) => runner === job.language)?.entry ?? "main";
    const request = {
      language: job.language,
      version: job.version,
      files: [
        { name: entry, content: job.code },
        ...grant.payload.files.map((file, at) => withEntity(file, job, at)),
      ],
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
      args: job.args,
      stdin: job.stdin,
      run_timeout: job.run_timeout,
      run_memory_limit: job.run_memory_limit,
      ptc: job.ptc && ptcOf(job.ptc, grant, history),
    };
    const body = this.#sign(request, grant, { toolSocket: job.ptc !== undefined });
    return this.#round(this.#client, "/execute", job, body, signal);
  }

  /** A further round of a paused program. `execution_not_found`: it is lost, with its runner or without. */
  async resume(
    job: Job,
    { runner_url, ...round }: Resume,
    grant: RegisteredGrant,
    signal: AbortSignal,
  ): Promise<RoundResponse> {
    const { session_id, output_session_id } = grant.payload;
    const { execution_id, run_timeout } = job;
    const ptc = { execution_id, ...round };
    const request = { session_id, output_session_id, run_timeout, ptc };
    const body = this.#sign(request, grant, { toolSocket: true });
    return this.#round(this.#at(runner_url), `/api/v2/executions/${execution_id}/resume`, job, body, signal);
  }

  async #round(
    client: InnerClient,
    path: string,
    job: Job,
    body: string,
    signal: AbortSignal,
  ): Promise<RoundResponse> {
    const answer = await client.json<unknown>({
      method: "POST",
      path,
      requestId: job.request_id,
      headers: { "content-type": "application/json" },
      body,
      signal,
      timeoutMs: 0,
    });
    return roundResponseSchema.parse(answer);
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

  #at(runnerUrl: string): InnerClient {
    if (!/^https?:\/\/[^/?#@]+(\/api\/v2)?$/.test(runnerUrl)) throw new ServiceError("execution_not_found");
    const baseUrl = runnerUrl.replace(/\/api\/v2$/, "");
    const known = this.#elsewhere.get(baseUrl);
    if (known !== undefined) return known;
    if (this.#elsewhere.size >= MAX_ELSEWHERE) {
      const [oldest] = this.#elsewhere.keys();
      this.#elsewhere.delete(oldest as string);
    }
    const client = new InnerClient({ baseUrl, unreachable: "execution_not_found" });
    this.#elsewhere.set(baseUrl, client);
    return client;
  }

  async healthy(): Promise<boolean> {
    try {
      const response = await this.#client.send({ method: "GET", path: "/api/v2/health", timeoutMs: 15_000 });
      await response.body.dump();
      return response.statusCode === 200;
    } catch {
      return false;
    }
  }

  async runtimes(): Promise<RuntimeInfo[]> {
    return z
      .array(runtimeInfoSchema)
      .parse(await this.#client.json({ method: "GET", path: "/api/v2/runtimes" }));
  }

  async close(): Promise<void> {
    await Promise.all([this.#client, ...this.#elsewhere.values()].map((client) => client.close()));
  }
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
