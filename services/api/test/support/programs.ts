/**
 * Programs with tools over real replicas of the API: what becomes of each round is the test's. The tool call server and the gateway take
 * everything, and can be asked for nothing but what the test has it list.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  callIdOf,
  type Job,
  type JobResult,
  newId,
  type PausedResponse,
  RUNTIMES_KEY,
  type ToolCallRequired,
} from "@svc/contracts";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import type { EndedRound } from "../../src/programmatic/completion.ts";
import { startReplicas } from "./replicas.ts";

export const pauseOf = (call_id: string): PausedResponse => ({
  paused: true,
  session_id: "s",
  pending_call_ids: [call_id],
  pending_calls: [{ call_id, tool_name: "t", tool_input: {} }],
  stdout: "",
  stderr: "",
  execution_time: 1,
  tool_calls_made: 1,
  runner_url: "http://127.0.0.1:1",
  language: "python",
  version: "3",
  limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
});

export const endOf = (code: number): EndedRound => ({
  session_id: "s",
  stdout: "",
  stderr: "",
  files: [],
  code,
  signal: null,
  status: null,
});

/** The end of a round at the program's n-th call. */
export const pausedAt = (n: number): JobResult => ({ ok: true, answer: { ...pauseOf(callIdOf(n)) } });
export const PAUSED = pausedAt(1);
/** Answers the call of that pause. */
export const RESULTS = [{ call_id: "call_001", result: 1 }];
export const ENDED: JobResult = { ok: true, answer: { ...endOf(0), wall_time: 1 } };

/** How a round ends; the signal says that its job was cancelled. */
export type Round = (job: Job, cancelled: AbortSignal) => Promise<JobResult> | JobResult;

async function startInner() {
  const inner: { listing: ((answer: ServerResponse) => void) | undefined } = { listing: undefined };
  const server = createServer((request, answer) => {
    request.resume();
    answer.setHeader("content-type", "application/json");
    if (request.method === "GET" && inner.listing !== undefined) return inner.listing(answer);
    answer.statusCode = request.method === "GET" ? 503 : 200;
    answer.end(JSON.stringify({ error: "store_unavailable", message: "Away." }));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    inner,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** `round`: of every job but those that only remove a paused program, which are listed in `discarded` instead. */
export async function startPrograms(round: Round, count = 1, more: Record<string, string> = {}) {
  const inner = await startInner();
  const env = {
    ...OPEN_PROGRAM_LIMITS,
    TOOL_CALL_SERVER_URL: inner.url,
    EGRESS_GATEWAY_URL: inner.url,
    ...more,
  };
  const made = await startReplicas(count, env);
  await made.redis.set(
    RUNTIMES_KEY,
    JSON.stringify([{ language: "python", version: "3.11.2", aliases: ["py"] }]),
  );
  const discarded: string[] = [];
  const work = async (job: Job, cancelled: AbortSignal): Promise<JobResult> => {
    if (job.discard === undefined) return round(job, cancelled);
    discarded.push(job.execution_id);
    return { ok: true, answer: {} };
  };
  const worker = await made.consume({ work });
  const post = (body: object, init: RequestInit = {}, path = "", at = 0) =>
    fetch(`${made.urls[at]}/exec/programmatic${path}`, {
      method: "POST",
      ...init,
      headers: { "content-type": "application/json", ...init.headers },
      body: JSON.stringify(body),
    });
  return {
    ...made,
    worker,
    discarded,
    /** What the tool call server lists of every program; undefined: it is away. */
    inner: inner.inner,
    start: (init?: RequestInit) => post({ code: newId(), tools: [{ name: "t" }] }, init),
    /** Answers the calls of a pause. */
    resume: (
      { continuation_token, tool_calls }: ToolCallRequired,
      init?: RequestInit,
      results: object[] = tool_calls.map(({ id }) => ({ call_id: id, result: 1 })),
    ) => post({ continuation_token, tool_results: results }, init),
    /** How many programs were cancelled. */
    cancel: async (request_id: string, at = 0) =>
      ((await (await post({ request_id }, {}, "/cancel", at)).json()) as { cancelled: number }).cancelled,
    stop: async () => {
      await made.stop();
      inner.stop();
    },
  };
}

export type Programs = Awaited<ReturnType<typeof startPrograms>>;

export const labelled = (label: string): RequestInit => ({
  headers: { "x-librechat-code-request-id": label },
});

/** The execution that a pause belongs to. */
export const executionOf = ({ continuation_token }: ToolCallRequired) =>
  continuation_token.split(".")[1] ?? "";
