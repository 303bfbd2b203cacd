/**
 * A real runner with everything that programs with tools need: jaild with tool directories, gateway, tool call server, file
 * server and Redis. Speaks to them as the API and a worker do.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { canonicalJson, signManifest } from "@svc/capabilities";
import {
  type CallAnswer,
  type ExecuteResponse,
  type GrantClaims,
  type ManifestScope,
  type MintedCallback,
  newId,
  type PausedResponse,
  type PendingCall,
  type ProgrammaticRun,
  type RecordedCall,
  type Tool,
} from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { startComponent } from "@svc/test-kit/components/component";
import { type Answer, INTERNAL_TOKEN, type Input, startGateway } from "@svc/test-kit/components/gateway";
import { startServer } from "@svc/test-kit/components/tool-call-server";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { freePort } from "@svc/test-kit/system/free-ports";
import { newKeys, packagesWith } from "./runner.ts";

export const TOOLS: Tool[] = [{ name: "add" }, { name: "look up", description: "Looks up." }];

/** How long a call may take to get to the tool call server. */
export const RECORDED_MS = 10_000;
const CONDITION_MS = 20_000;
/** On a machine that does other work, what a program calls at once may take a while. */
const TOGETHER = { PTC_SETTLE_MAX_MS: "20000" };

/** Waits until something holds. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const began = performance.now(); !(await holds()); await delay(20)) {
    if (performance.now() - began > CONDITION_MS) throw new Error(`not in time: ${what}`);
  }
}

export type Round = PausedResponse | ExecuteResponse;
export type Result = { call_id: string; result?: unknown; is_error?: boolean; error_message?: string };

export interface SystemOptions {
  slots?: number;
  /** Jails that are not paused, when there are fewer of them than slots. */
  ready?: number;
  jaildArgs?: readonly string[];
  /** Programs are started as the image says, with its preludes. Else as plain ones, which speak to the socket themselves. */
  preludes?: boolean;
  env?: Record<string, string>;
  /** A launcher stands in the runner's place, and its guests have jails of their own. */
  component?: "runner" | "launcher";
}

export async function startProgramSystem({
  slots = 4,
  ready = slots,
  jaildArgs = [],
  preludes = false,
  env = {},
  component = "runner",
}: SystemOptions = {}) {
  const keys = newKeys();
  const directory = mkdtempSync(join(tmpdir(), "svc-programs-"));
  const tools = join(directory, "tools");
  const jaild = await Jaild.start({ slots, ready, args: ["--tool-directory", tools, ...jaildArgs] });
  const toolPort = await freePort();
  const gateway = await startGateway({ TOOL_CALL_SERVER_URL: `http://127.0.0.1:${toolPort}`, ...env });
  const toolServer = await startServer(gateway.redis.url, {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    TOOL_CALL_SERVER_PORT: String(toolPort),
    ...env,
  });
  const runner = await startComponent(component, {
    PORT: "0",
    SANDBOX_FORWARD_TARGET: new URL(gateway.gateway.url).host,
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: new URL(gateway.gateway.url).port,
    SANDBOX_JAIL_SOCKET: jaild.socket,
    SANDBOX_PACKAGES_DIRECTORY: preludes ? join(IMAGE, "..") : packagesIn(directory),
    SANDBOX_TOOL_DIRECTORY: tools,
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: keys.publicKey,
    SANDBOX_ADVERTISED_URL: "http://this-runner:2000",
    ...TOGETHER,
    ...env,
  });
  const client = new InnerClient({ baseUrl: runner.url, unreachable: "upstream_unavailable" });

  const sign = (scope: ManifestScope, body: object, grant: string, toolSocket = true) =>
    signManifest(
      keys.signing,
      scope,
      { body: canonicalJson(body), grant },
      { now: Math.floor(Date.now() / 1000), ttl: 300, toolSocket },
    );
  const post = async (
    path: string,
    body: object,
    signal?: AbortSignal,
    accept = "application/json",
  ): Promise<Answer> => {
    const {
      statusCode,
      headers,
      body: answer,
    } = await client.send({
      method: "POST",
      path,
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify(body),
      timeoutMs: 0,
      signal,
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { status: statusCode, headers, bytes, json: () => JSON.parse(bytes.toString("utf8")) };
  };

  /** An execution whose exchange at the tool call server is open. */
  const execution = async (tools: readonly Tool[] = TOOLS, executionId = newId()) => {
    const names = tools.map(({ name }) => name);
    const exchange = await toolServer.open({ execution_id: executionId, tools: names });
    const minted = await gateway.postJson("/internal/ptc-callback-token", {
      executionId,
      sessionId: newId(),
      callbackToken: exchange.token,
      allowedToolNames: names,
    });
    if (minted.status !== 201) throw new Error(`the gateway said ${minted.bytes}`);
    const { callbackToken, grant_id: grantId } = minted.json() as unknown as MintedCallback;
    return { id: executionId, tools, exchange, callbackToken, grantId };
  };
  type Execution = Awaited<ReturnType<typeof execution>>;

  const grantFor = (one: Execution, inputs: Input[] = [], change: Partial<GrantClaims> = {}) =>
    gateway.register(inputs, { exec_id: one.id, ...change });

  /** Starts a program, or runs it again with what is recorded. */
  const start = async (
    one: Execution,
    code: string,
    {
      ptc = {},
      language = "python",
      inputs = [],
      claims = {},
      signal,
      accept,
      ...rest
    }: {
      accept?: string;
      claims?: Partial<GrantClaims>;
      ptc?: Partial<ProgrammaticRun>;
      language?: string;
      inputs?: Input[];
      signal?: AbortSignal;
      run_timeout?: number;
    } = {},
  ): Promise<Answer> => {
    const grant = await grantFor(one, inputs, claims);
    const body = {
      language,
      version: "*",
      files: [
        { name: language === "python" ? "main.py" : "script.sh", content: code },
        ...grant.payload.files,
      ],
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
      ...rest,
      ptc: {
        mode: "live",
        execution_id: one.id,
        round: 1,
        tools_json: JSON.stringify(one.tools),
        callback_token: one.callbackToken,
        hash_seed: 7,
        max_calls: 200,
        ...ptc,
      },
    };
    const manifest = sign(grant.executionManifestClaims, body, grant.egressGrantToken);
    const signed = { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
    return post("/execute", signed, signal, accept);
  };
  /** Lets a paused program go on. The results must be at the tool call server, or come soon. */
  const resume = async (
    one: Execution,
    round: number,
    callIds: readonly string[],
    {
      runTimeout = 60_000,
      answers,
      signal,
    }: { runTimeout?: number; answers?: CallAnswer[]; signal?: AbortSignal } = {},
  ): Promise<Answer> => {
    const grant = await grantFor(one);
    const body = {
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
      run_timeout: runTimeout,
      ptc: { execution_id: one.id, round, answered_call_ids: callIds, ...(answers && { answers }) },
    };
    const manifest = sign(grant.executionManifestClaims, body, grant.egressGrantToken);
    const signed = { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
    return post(`/api/v2/executions/${one.id}/resume`, signed, signal);
  };
  const discard = async (id: string, signedFor = id): Promise<number> => {
    const manifest = sign(scopeOfNothing(signedFor), {}, "");
    const { statusCode, body } = await client.send({
      method: "DELETE",
      path: `/api/v2/executions/${id}`,
      headers: { "x-svc-execution-manifest": manifest },
    });
    await body.dump();
    return statusCode;
  };
  /** Answers calls, as soon as they are recorded. */
  const answer = async (one: Execution, results: Result[]) => {
    const ids = results.map(({ call_id }) => call_id);
    await toolServer.pending(one.exchange, ids, RECORDED_MS);
    await toolServer.results(
      one.exchange,
      results.map((result) => ({ result: null, ...result })),
    );
  };

  /** What the API does: calls are answered round after round, until the program ends. */
  const drive = async (
    code: string,
    tool: (call: PendingCall) => unknown,
    options: Parameters<typeof start>[2] & { tools?: readonly Tool[] } = {},
  ) => {
    const one = await execution(options.tools);
    const rounds: PausedResponse[] = [];
    const calls: RecordedCall[] = [];
    let round = okOf(await start(one, code, options));
    while ("paused" in round) {
      rounds.push(round);
      const { pending_calls } = await toolServer.pending(one.exchange, round.pending_call_ids, RECORDED_MS);
      const recordedCalls = pending_calls.map(({ timestamp: _, ...call }) => call);
      if (round.pending_calls !== undefined && !isDeepStrictEqual(round.pending_calls, recordedCalls)) {
        throw new Error(`the pause tells of other calls: ${JSON.stringify(round.pending_calls)}`);
      }
      const results = pending_calls.map((call) => resultOf(call, tool));
      for (const [at, call] of pending_calls.entries()) calls.push(recorded(call, results[at]));
      await answer(one, results);
      round = okOf(await resume(one, rounds.length + 1, round.pending_call_ids));
    }
    await toolServer.close(one.exchange);
    return { one, rounds, calls, result: round };
  };

  return {
    jaild,
    gateway,
    toolServer,
    runner,
    execution,
    start,
    resume,
    discard,
    answer,
    drive,
    post,
    sign,
    grantFor,
    metric: async (line: string): Promise<number> => {
      const text = await (await fetch(`${runner.url}/metrics`)).text();
      return Number(
        text
          .split("\n")
          .find((each) => each.startsWith(`${line} `))
          ?.slice(line.length) ?? 0,
      );
    },
    /** Executions by state. Tells of them also where health can't, because the busy machine lets no jail be made in time. */
    active: async () => {
      const text = await (await fetch(`${runner.url}/metrics`)).text();
      const count = (state: string) =>
        Number(
          text.match(new RegExp(`^svc_sandbox_active_executions\\{state="${state}"\\} (\\d+)$`, "m"))?.[1],
        );
      return { running: count("running"), paused: count("paused") };
    },
    /** Without slots where the runner could make no jail in time, which a busy machine may bring about. */
    health: async () =>
      (await (await fetch(`${runner.url}/api/v2/health`)).json()) as {
        slots?: { busy: number; paused: number };
      },
    leftInToolDirectories: (): string[] =>
      readdirSync(tools).flatMap((slot) => readdirSync(join(tools, slot))),
    stop: async () => {
      await client.close();
      await runner.kill();
      await toolServer.stop();
      await gateway.stop();
      await jaild.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export type ProgramSystem = Awaited<ReturnType<typeof startProgramSystem>>;

/** The 200 answer of a round. */
export function okOf(answer: Answer): Round {
  if (answer.status !== 200) throw new Error(`the runner said ${answer.status}: ${answer.bytes}`);
  return answer.json() as unknown as Round;
}

export function pausedOf(answer: Answer): PausedResponse {
  const round = okOf(answer);
  if (!("paused" in round)) throw new Error(`the program ended: ${JSON.stringify(round)}`);
  return round;
}

export function endedOf(answer: Answer): ExecuteResponse {
  const round = okOf(answer);
  if ("paused" in round) throw new Error("the program paused");
  return round;
}

class ToolFailure extends Error {}
export const fail = (message: string): never => {
  throw new ToolFailure(message);
};

function resultOf(call: PendingCall, tool: (call: PendingCall) => unknown): Result {
  try {
    return { call_id: call.call_id, result: tool(call) };
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    return { call_id: call.call_id, result: null, is_error: true, error_message: error.message };
  }
}

export function recorded(
  { call_id, tool_name, tool_input }: PendingCall,
  result: Result | undefined,
): RecordedCall {
  const call = { call_id, name: tool_name, input_json: JSON.stringify(tool_input) };
  if (result === undefined) return call;
  const outcome = result.is_error
    ? { error_message: result.error_message ?? "" }
    : { result_json: JSON.stringify(result.result) };
  return { ...call, outcome };
}

function scopeOfNothing(execId: string): ManifestScope {
  return {
    exec_id: execId,
    tenant_id: "-",
    user_id: "-",
    session_key: "-",
    input_files: [],
    read_sessions: [],
    output_session_id: "-",
    max_upload_bytes: 0,
    max_output_files: 0,
    max_requests: 0,
    max_tool_calls: 0,
  };
}

/** The image's runtimes, their programs with tools started as any other. */
const packagesIn = (directory: string) =>
  packagesWith(directory, (runtimes) =>
    runtimes.map((runtime) =>
      ["python", "bash"].includes(String(runtime.language))
        ? { ...runtime, programmatic: { command: runtime.command, env: {} } }
        : runtime,
    ),
  );
