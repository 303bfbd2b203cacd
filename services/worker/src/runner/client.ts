/**
 * The worker's calls to runners: execute, resume and discard (signed), runtimes. Closing the connection kills the run. Only the runner
 * that paused a program holds it. Runners are not trusted: their answers are bounded in bytes, depth and fields, and the address of a
 * paused program must be one that the worker knows.
 */
import { parseSigningKey } from "@svc/capabilities";
import {
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
  runtimeInfoSchema,
  ServiceError,
} from "@svc/contracts";
import type { Config, InnerClient, Tracing } from "@svc/service-kit";
import { endFailed, parsedVariable } from "@svc/service-kit";
import { z } from "zod";
import { discardManifest } from "./discard-request.ts";
import type { TellEvent } from "./event-lines.ts";
import type { RunnerFleet } from "./fleet.ts";
import { isProgramLost } from "./outcome.ts";
import { type AnswerBounds, answerBounds, askRound } from "./round.ts";
import { requestSigner, type SignRequest } from "./signed-request.ts";

const DISCARD_MS = 5000;
/** Largest list of runtimes. */
const MAX_RUNTIMES_BYTES = 1024 * 1024;
const RUNTIMES_MS = 5000;
/** A round to send to a runner. */
interface Asked {
  path: string;
  job: Job;
  /** The signed request, as JSON. */
  body: string;
  signal: AbortSignal;
  tell: TellEvent | undefined;
}

export type PersistSession = NonNullable<ExecuteRequest["persist_session"]>;
export type Resume = NonNullable<Job["resume"]>;

export class Runner {
  readonly #fleet: RunnerFleet;
  readonly #bounds: AnswerBounds;
  readonly #sign: SignRequest;
  readonly #signDiscard: (executionId: string) => string;
  readonly #tracing: Tracing | undefined;

  constructor(config: Config, fleet: RunnerFleet, tracing?: Tracing) {
    this.#fleet = fleet;
    this.#tracing = tracing;
    this.#bounds = answerBounds(config);
    const key = parsedVariable("SVC_EXECUTION_MANIFEST_PRIVATE_KEY", config, parseSigningKey);
    const ttl = config.EXECUTION_MANIFEST_TTL_SECONDS;
    this.#sign = requestSigner(key, ttl);
    this.#signDiscard = (executionId) => discardManifest(key, ttl, executionId);
  }

  /** `history`: for a replay, all calls so far. `session`: the session that the run continues. */
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
    return this.#fleet.run(signal, (client, own, address) => {
      // Signed for each runner that is tried: a runner refuses a manifest that was signed before it started.
      const body = this.#sign(request, grant, { toolSocket: job.ptc !== undefined });
      return this.#round(client, address, { path: "/execute", job, body, signal: own, tell });
    });
  }

  /** Makes a further round of a paused program. Throws `execution_not_found` when the program is lost, with its runner or alone. */
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
    const send = (client: InnerClient, own: AbortSignal, address: string) =>
      this.#round(client, address, { path, job, body, signal: own, tell });
    return this.#fleet.held(runner_url, signal, send).catch((cause: unknown) => {
      throw isProgramLost(cause) ? new ServiceError("execution_not_found", undefined, { cause }) : cause;
    });
  }

  async #round(client: InnerClient, address: string, asked: Asked): Promise<RoundResponse> {
    const { job, tell } = asked;
    const span = this.#tracing?.join("runner.execute", "client", job.trace);
    try {
      const trace = span?.context ?? job.trace;
      const round = this.#resumable(
        await askRound(client, {
          ...asked,
          trace,
          requestId: job.request_id,
          tell: tell && ((event) => tell(event, job.session_id)),
          bounds: this.#bounds,
        }),
        address,
      );
      span?.end();
      return round;
    } catch (error) {
      endFailed(span, error);
      throw error;
    }
  }

  /**
   * `address`: the runner that made the round. A paused program resumes there or,
   * behind a balancer, at the address that its runner advertises.
   */
  #resumable(round: RoundResponse, address: string): RoundResponse {
    if (!("paused" in round)) return round;
    if (this.#fleet.isDirect) return { ...round, runner_url: address };
    if (this.#fleet.isKnown(round.runner_url)) return round;
    throw new ServiceError("internal_error", undefined, {
      cause: `a runner advertises ${JSON.stringify(round.runner_url)}, which is not among SANDBOX_RUNNER_URLS`,
    });
  }

  /** Ends a paused program. A runner that does not have it any more is no error. */
  async discard(job: Job, runnerUrl: string): Promise<void> {
    const { signal } = new AbortController();
    await this.#fleet.held(runnerUrl, signal, (client) => {
      const call = {
        method: "DELETE" as const,
        path: `/api/v2/executions/${job.execution_id}`,
        requestId: job.request_id,
        headers: { [MANIFEST_HEADER]: this.#signDiscard(job.execution_id) },
        timeoutMs: DISCARD_MS,
      };
      return client.whole(call, ({ body }) => body.dump());
    });
  }

  async runtimes(): Promise<RuntimeInfo[]> {
    const call = {
      method: "GET" as const,
      path: "/api/v2/runtimes",
      maxBytes: MAX_RUNTIMES_BYTES,
      timeoutMs: RUNTIMES_MS,
    };
    return z.array(runtimeInfoSchema).parse(await this.#fleet.ask((client) => client.json(call)));
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
