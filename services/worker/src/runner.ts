/** The worker's calls to the runner: execute (signed), health, runtimes. Closing the connection kills the run. */
import { parseSigningKey } from "@svc/capabilities";
import {
  type ExecuteResponse,
  executeResponseSchema,
  type Job,
  LANGUAGES,
  type RegisteredGrant,
  type RuntimeInfo,
  runtimeInfoSchema,
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import { InnerClient, parsedVariable } from "@svc/service-kit";
import { z } from "zod";
import { requestSigner, type SignRequest } from "./signed-request.ts";

export class Runner {
  readonly #client: InnerClient;
  readonly #sign: SignRequest;

  constructor(config: Config) {
    const baseUrl = config.SANDBOX_ENDPOINT.replace(/\/api\/v2$/, "");
    this.#client = new InnerClient({ baseUrl, unreachable: "sandbox_execution_failed" });
    this.#sign = requestSigner(
      parsedVariable("SVC_EXECUTION_MANIFEST_PRIVATE_KEY", config, parseSigningKey),
      config.EXECUTION_MANIFEST_TTL_SECONDS,
    );
  }

  async execute(job: Job, grant: RegisteredGrant, signal: AbortSignal): Promise<ExecuteResponse> {
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
    };
    const answer = await this.#client.json<unknown>({
      method: "POST",
      path: "/execute",
      requestId: job.request_id,
      headers: { "content-type": "application/json" },
      body: this.#sign(request, grant),
      signal,
      timeoutMs: 0,
    });
    return executeResponseSchema.parse(answer);
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
    await this.#client.close();
  }
}

function withEntity<T extends object>(file: T, job: Job, at: number): T & { entity_id?: string } {
  const entity = job.files[at]?.entity_id;
  return entity === undefined ? file : { ...file, entity_id: entity };
}
