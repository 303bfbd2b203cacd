/**
 * The sandbox side of a running system, as the worker sets it up and as the runner sees it. The test plays the worker,
 * whose secrets it takes from the data folder, to have live grants and signed requests like a real run.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalJson, parseSigningKey, type SigningKey, signManifest } from "@svc/capabilities";
import {
  GRANT_HEADER,
  INTERNAL_TOKEN_HEADER,
  type MintedCallback,
  NAMESPACE_HEADER,
  newId,
  ORIGINAL_FILENAME_HEADER,
  type PendingCalls,
  type RegisteredGrant,
  type ToolExchange,
} from "@svc/contracts";
import { Answer } from "./api.ts";
import type { System } from "./system.ts";

export interface Stored {
  id: string;
  session_id: string;
  name: string;
}

export interface Run {
  grant: RegisteredGrant;
  output: string;
}

type Part = "runner" | "file-server" | "tool-call-server" | "egress-gateway";

export interface Sent {
  headers?: Record<string, string | undefined>;
  body?: string | Uint8Array<ArrayBuffer>;
}

export class SandboxSide {
  readonly #ports: Record<Part, number>;
  /** Headers with the token of whoever makes such a call. */
  readonly #shows: Record<"store" | "read" | "tools" | "trusted", Record<string, string>>;
  readonly #key: SigningKey;

  constructor({ instance }: Pick<System, "instance">) {
    this.#ports = instance.ports;
    const lines = readFileSync(join(instance.dataDir, "secrets.env"), "utf8").split("\n");
    const secretOf = (name: string) =>
      lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
    const showing = (pair: string) => ({ [INTERNAL_TOKEN_HEADER]: secretOf(`SVC_INTERNAL_TOKEN_${pair}`) });
    this.#shows = {
      store: showing("EGRESS_GATEWAY_TO_FILE_SERVER"),
      read: showing("API_TO_FILE_SERVER"),
      tools: showing("API_TO_TOOL_CALL_SERVER"),
      trusted: showing("WORKER_TO_EGRESS_GATEWAY"),
    };
    this.#key = parseSigningKey(secretOf("SVC_EXECUTION_MANIFEST_PRIVATE_KEY"));
  }

  /** Any call to an inner port, with nothing but what is said. */
  async call(part: Part, method: string, path: string, { headers = {}, body }: Sent = {}): Promise<Answer> {
    const given = Object.entries(headers).filter(
      (header): header is [string, string] => header[1] !== undefined,
    );
    const response = await fetch(`http://127.0.0.1:${this.#ports[part]}${path}`, {
      method,
      headers: given,
      ...(body === undefined ? {} : { body }),
    });
    return new Answer(response.status, response.headers, Buffer.from(await response.arrayBuffer()));
  }

  /** A file of some user, stored as the gateway stores outputs. */
  async store(namespace: string, name: string, content: string | Uint8Array<ArrayBuffer>): Promise<Stored> {
    const [id, session_id] = [newId(), newId()];
    const headers = {
      ...this.#shows.store,
      [NAMESPACE_HEADER]: namespace,
      [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(name),
      "content-type": "text/plain",
    };
    const answer = await this.call("file-server", "PUT", `/sessions/${session_id}/objects/${id}`, {
      headers,
      body: content,
    });
    answer.ok();
    return { id, session_id, name };
  }

  /** The stored bytes and whose they are; the status when there are none. */
  async stored(session: string, id: string, namespace: string): Promise<string | number> {
    const headers = { ...this.#shows.read, [NAMESPACE_HEADER]: namespace };
    const answer = await this.call("file-server", "GET", `/sessions/${session}/objects/${id}`, { headers });
    return answer.status === 200 ? answer.text : answer.status;
  }

  /** A live grant of a run of this user over these inputs. */
  async register(userId: string, inputs: readonly Stored[]): Promise<Run> {
    const output = newId();
    const files = inputs.map(({ id, session_id, name }) => ({ id, storage_session_id: session_id, name }));
    const claims = {
      exec_id: newId(),
      tenant_id: "t",
      user_id: userId,
      session_key: `t:user:${userId}`,
      input_files: inputs,
      read_sessions: [...new Set(inputs.map(({ session_id }) => session_id))],
      output_session_id: output,
      max_upload_bytes: 1_000_000,
      max_output_files: 50,
      max_requests: 1000,
      max_tool_calls: 200,
      lifetime_seconds: 300,
    };
    const answer = await this.trusted("/internal/egress-grants", {
      payload: { session_id: newId(), output_session_id: output, files },
      claims,
    });
    if (answer.status !== 201) throw new Error(answer.text);
    return { grant: answer.json<RegisteredGrant>(), output };
  }

  /** A program with this one tool: its execution and the callback token that its runner holds. */
  async openTools(tool: string): Promise<{ executionId: string; token: string }> {
    const [executionId, sessionId] = [newId(), newId()];
    const opened = await this.#toTools("POST", "/sessions", {
      execution_id: executionId,
      session_id: sessionId,
      tools: [tool],
    });
    const minted = await this.trusted("/internal/ptc-callback-token", {
      executionId,
      sessionId,
      callbackToken: opened.ok<ToolExchange>().callback_token,
      allowedToolNames: [tool],
    });
    if (minted.status !== 201) throw new Error(minted.text);
    return { executionId, token: minted.json<MintedCallback>().callbackToken };
  }

  /** The tools that the execution's calls wait for, after a moment in which calls may arrive. */
  async pendingTools(executionId: string): Promise<string[]> {
    const { pending_calls } = await this.#pending(executionId);
    return pending_calls.map(({ tool_name }) => tool_name);
  }

  /** Gives every waiting call a result. */
  async answerTools(executionId: string): Promise<void> {
    const { pending_calls } = await this.#pending(executionId);
    const results = pending_calls.map(({ call_id }) => ({ call_id, result: "done" }));
    (await this.#toTools("POST", `/sessions/${executionId}/results`, { results })).ok();
  }

  async #pending(executionId: string): Promise<PendingCalls> {
    return (await this.#toTools("GET", `/sessions/${executionId}/pending?wait_ms=500`)).ok<PendingCalls>();
  }

  #toTools(method: string, path: string, body?: object): Promise<Answer> {
    const headers = { ...this.#shows.tools, "content-type": "application/json" };
    return this.call("tool-call-server", method, path, {
      headers: body === undefined ? this.#shows.tools : headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** A call that only trusted components may make. */
  trusted(path: string, body: object): Promise<Answer> {
    const headers = { ...this.#shows.trusted, "content-type": "application/json" };
    return this.call("egress-gateway", "POST", path, { headers, body: JSON.stringify(body) });
  }

  /** The signed request of a run, as the runner gets it. */
  request({ grant }: Run, code: string): Record<string, unknown> {
    const body = {
      language: "bash",
      version: "*",
      files: [{ name: "main.sh", content: code }, ...grant.payload.files],
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
    };
    return this.sign(grant, body, this.#key);
  }

  /** The same for a body that the test has changed. */
  resign({ grant }: Run, body: object): Record<string, unknown> {
    return this.sign(grant, body, this.#key);
  }

  sign(grant: RegisteredGrant, body: object, key: SigningKey): Record<string, unknown> {
    const bound = { body: canonicalJson(body), grant: grant.egressGrantToken };
    const now = Math.floor(Date.now() / 1000);
    const manifest = signManifest(key, grant.executionManifestClaims, bound, { now, ttl: 300 });
    return { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
  }

  execute(body: unknown): Promise<Answer> {
    const headers = { "content-type": "application/json" };
    return this.call("runner", "POST", "/execute", { headers, body: JSON.stringify(body) });
  }
}

/** What the runner sends to the gateway under a grant. */
export const underGrant = (grant: RegisteredGrant) => ({ [GRANT_HEADER]: grant.egressGrantToken });
