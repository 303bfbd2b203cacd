/** Real tool call servers on a Redis of their own, and what the API and the gateway do with them. */
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  newId,
  type OpenToolExchange,
  type PendingCalls,
  type RecordToolCalls,
  TOOL_CALL_ID_HEADER,
} from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { newSecret } from "../credentials/secrets.ts";
import { type RunningComponent, startComponent } from "./component.ts";
import { type PrivateRedis, startRedis } from "./redis.ts";

export const INTERNAL_TOKEN = newSecret();

export interface Answer {
  status: number;
  text: string;
  body: Record<string, unknown>;
}

type Given = { call_id: string; result?: unknown; is_error?: boolean; error_message?: string };

/** A server process; `restart` brings it back at the same address. */
export async function startServer(redisUrl: string, env: Record<string, string> = {}) {
  const settings = {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: redisUrl,
    TOOL_CALL_SERVER_PORT: "0",
    ...env,
  };
  let running: RunningComponent = await startComponent("tool-call-server", settings);
  const { url } = running;
  const client = new InnerClient({
    baseUrl: url,
    internalToken: settings.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "upstream_unavailable",
    connections: 5000,
  });

  const send = async (
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: unknown,
    { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Answer> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await client.send({
      method,
      path,
      signal,
      timeoutMs: 0,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: text }),
    });
    const received = await answer.body.text();
    return { status: answer.statusCode, text: received, body: JSON.parse(received) };
  };

  const open = async (change: Partial<OpenToolExchange> = {}): Promise<Exchange> => {
    const execution = change.execution_id ?? newId();
    const request = { execution_id: execution, session_id: newId(), tools: ["add", "look up"], ...change };
    const answer = await send("POST", "/sessions", request);
    if (answer.status !== 200) throw new Error(`the tool call server said ${answer.text}`);
    return { execution, token: answer.body.callback_token as string };
  };
  const call = (
    { execution, token }: Exchange,
    id: string,
    input: unknown = {},
    { tool = "add", signal, raw }: { tool?: string; signal?: AbortSignal; raw?: string } = {},
  ): Promise<Answer> =>
    send("POST", "/tool-call", raw ?? { tool_name: tool, input }, {
      headers: {
        [EXECUTION_ID_HEADER]: execution,
        [TOOL_CALL_ID_HEADER]: id,
        [CALLBACK_TOKEN_HEADER]: token,
      },
      ...(signal === undefined ? {} : { signal }),
    });
  /** Has calls recorded, all or none; `calls` may be the text of the request. */
  const record = (
    { execution, token }: Exchange,
    calls: RecordToolCalls["calls"] | string,
  ): Promise<Answer> =>
    send("POST", "/tool-calls", typeof calls === "string" ? calls : { calls }, {
      headers: { [EXECUTION_ID_HEADER]: execution, [CALLBACK_TOKEN_HEADER]: token },
    });
  const pending = async ({ execution }: Exchange, ids: string[] = [], waitMs = 0): Promise<PendingCalls> => {
    const asked = ids.length === 0 ? "" : `&call_ids=${ids.join(",")}`;
    const answer = await send("GET", `/sessions/${execution}/pending?wait_ms=${waitMs}${asked}`);
    if (answer.status !== 200) throw new Error(`the tool call server said ${answer.text}`);
    return answer.body as unknown as PendingCalls;
  };
  const results = ({ execution }: Exchange, given: Given[]): Promise<Answer> =>
    send("POST", `/sessions/${execution}/results`, { results: given });
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  };

  return {
    url,
    get pid() {
      return running.pid;
    },
    send,
    open,
    close: ({ execution }: Exchange) => send("DELETE", `/sessions/${execution}`),
    call,
    record,
    pending,
    results,
    metric,
    kill: (signal?: NodeJS.Signals) => running.kill(signal),
    restart: async () => {
      running = await startComponent("tool-call-server", {
        ...settings,
        TOOL_CALL_SERVER_PORT: new URL(url).port,
      });
    },
    stop: async () => {
      await client.close();
      await running.kill();
    },
  };
}

export interface Exchange {
  execution: string;
  token: string;
}
export type ToolCallServer = Awaited<ReturnType<typeof startServer>>;

/** Several servers on one durable store. */
export async function startServers(count: number, env: Record<string, string> = {}) {
  const redis: PrivateRedis = await startRedis({ kept: true });
  const servers = await Promise.all(Array.from({ length: count }, () => startServer(redis.url, env)));
  return {
    redis,
    servers,
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
      await redis.stop();
    },
  };
}

export const callIds = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `call_${String(index + 1).padStart(3, "0")}`);

/** Calls of `add` with these ids, as a request to record them has them. */
export const toRecord = (ids: readonly string[], input: unknown = {}): RecordToolCalls["calls"] =>
  ids.map((call_id) => ({ call_id, call: { tool_name: "add", input } }));
