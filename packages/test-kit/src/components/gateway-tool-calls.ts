/** A real gateway in front of a real tool call server, and what the API and a runner's relay do with them. */
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  INTERNAL_TOKEN_HEADER,
  type MintCallback,
  type MintedCallback,
  newId,
  type RecordToolCalls,
  TOOL_CALL_ID_HEADER,
} from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { type RunningComponent, startComponent } from "./component.ts";
import { type Call, SECRET } from "./gateway.ts";
import { startRedis } from "./redis.ts";
import { type Answer, type Exchange, INTERNAL_TOKEN, startServer } from "./tool-call-server.ts";

/** An execution whose exchange is open and whose token is sealed. */
export interface Execution extends Exchange {
  sealed: string;
  grantId: string;
}

export async function startToolGateway(env: Record<string, string> = {}) {
  const redis = await startRedis({ kept: true });
  const server = await startServer(redis.url, env);
  const settings = {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    SVC_EGRESS_GRANT_SECRET: SECRET,
    REDIS_URL: redis.url,
    TOOL_CALL_SERVER_URL: server.url,
    EGRESS_GATEWAY_PORT: "0",
    ...env,
  };
  let gateway: RunningComponent = await startComponent("egress-gateway", settings);
  const { url } = gateway;
  const client = new InnerClient({ baseUrl: url, unreachable: "upstream_unavailable", connections: 5000 });

  const post = async (
    path: string,
    body: Call["body"],
    headers: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<Answer> => {
    const given = { "content-type": "application/json", ...headers };
    const answer = await client.send({ method: "POST", path, body, signal, timeoutMs: 0, headers: given });
    const text = await answer.body.text();
    return { status: answer.statusCode, text, body: text === "" ? {} : JSON.parse(text) };
  };
  const internal = (path: string, body: unknown, token = INTERNAL_TOKEN): Promise<Answer> =>
    post(path, JSON.stringify(body), { [INTERNAL_TOKEN_HEADER]: token });
  const mint = async (
    { execution, token }: Exchange,
    change: Partial<MintCallback> = {},
  ): Promise<Execution> => {
    const answer = await internal("/internal/ptc-callback-token", {
      executionId: execution,
      sessionId: newId(),
      callbackToken: token,
      allowedToolNames: ["add", "look up"],
      ...change,
    });
    if (answer.status !== 201) throw new Error(`the gateway said ${answer.text}`);
    const { grant_id, callbackToken } = answer.body as unknown as MintedCallback;
    return { execution, token, sealed: callbackToken, grantId: grant_id };
  };

  return {
    redis,
    server,
    url,
    get pid() {
      return gateway.pid;
    },
    internal,
    mint,
    start: async (change: Partial<MintCallback> = {}): Promise<Execution> =>
      mint(await server.open(), change),
    call: (
      { execution, sealed }: Pick<Execution, "execution" | "sealed">,
      id: string,
      input: unknown = {},
      {
        tool = "add",
        headers = {},
        raw,
        signal,
      }: { tool?: string; headers?: Record<string, string>; raw?: Call["body"]; signal?: AbortSignal } = {},
    ): Promise<Answer> =>
      post(
        "/tool-call",
        raw ?? JSON.stringify({ tool_name: tool, input }),
        {
          [EXECUTION_ID_HEADER]: execution,
          [TOOL_CALL_ID_HEADER]: id,
          [CALLBACK_TOKEN_HEADER]: sealed,
          ...headers,
        },
        signal,
      ),
    /** Has calls recorded, all or none; `calls` may be the text of the request. */
    record: (
      { execution, sealed }: Pick<Execution, "execution" | "sealed">,
      calls: RecordToolCalls["calls"] | string,
      headers: Record<string, string> = {},
    ): Promise<Answer> =>
      post("/tool-calls", typeof calls === "string" ? calls : JSON.stringify({ calls }), {
        [EXECUTION_ID_HEADER]: execution,
        [CALLBACK_TOKEN_HEADER]: sealed,
        ...headers,
      }),
    post,
    kill: (signal?: NodeJS.Signals) => gateway.kill(signal),
    restart: async () => {
      gateway = await startComponent("egress-gateway", {
        ...settings,
        EGRESS_GATEWAY_PORT: new URL(url).port,
      });
    },
    stop: async () => {
      await client.close();
      await gateway.kill();
      await server.stop();
      await redis.stop();
    },
  };
}

export type ToolGateway = Awaited<ReturnType<typeof startToolGateway>>;
