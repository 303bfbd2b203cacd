/** A real gateway in front of a real file server and a Redis of its own, and what a worker and a runner do with it. */
import { sealKeys } from "@svc/capabilities";
import {
  GRANT_HEADER,
  type GrantClaims,
  INTERNAL_TOKEN_HEADER,
  NAMESPACE_HEADER,
  newId,
  ORIGINAL_FILENAME_HEADER,
  type RegisteredGrant,
} from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { newSecret } from "../credentials/secrets.ts";
import { startComponent } from "./component.ts";
import { INTERNAL_TOKEN, type PrivateFileServer, startFileServer } from "./file-server.ts";
import { type PrivateRedis, startRedis } from "./redis.ts";

export const SECRET = newSecret();
export const keys = sealKeys(SECRET);
export const NAMESPACE = "tenant:user:user-1";
export { INTERNAL_TOKEN };

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  json: () => Record<string, unknown>;
}
export type Call = Parameters<InnerClient["send"]>[0];

export interface Input {
  id: string;
  session_id: string;
  name: string;
}

export async function startGateway(env: Record<string, string> = {}) {
  const redis: PrivateRedis = await startRedis();
  const files: PrivateFileServer = await startFileServer(redis.url);
  const settings = {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    SVC_EGRESS_GRANT_SECRET: SECRET,
    REDIS_URL: redis.url,
    FILE_SERVER_URL: files.url,
    EGRESS_GATEWAY_PORT: "0",
    LOG_LEVEL: "info",
    ...env,
  };
  let gateway = await startComponent("egress-gateway", settings);
  const client = (baseUrl: string) => new InnerClient({ baseUrl, unreachable: "upstream_unavailable" });
  const [toGateway, toFiles] = [client(gateway.url), client(files.url)];
  const through =
    (to: InnerClient) =>
    async (call: Call): Promise<Answer> => {
      const { statusCode, headers, body } = await to.send(call);
      const bytes = Buffer.from(await body.arrayBuffer());
      return { status: statusCode, headers, bytes, json: () => JSON.parse(bytes.toString("utf8")) };
    };
  const call = through(toGateway);
  const fileCall = through(toFiles);

  const upload = async (
    name: string,
    content: string | Buffer,
    session = newId(),
    readOnly = false,
  ): Promise<Input> => {
    const id = newId();
    const answer = await fileCall({
      method: "PUT",
      path: `/sessions/${session}/objects/${id}`,
      headers: {
        [INTERNAL_TOKEN_HEADER]: INTERNAL_TOKEN,
        [NAMESPACE_HEADER]: NAMESPACE,
        [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(name),
        "content-type": "text/csv",
        ...(readOnly ? { "x-read-only": "true" } : {}),
      },
      body: content,
    });
    if (answer.status !== 200) throw new Error(`the file server said ${answer.status}`);
    return { id, session_id: session, name };
  };
  const postJson = (path: string, body: unknown, token: string | undefined = INTERNAL_TOKEN) =>
    call({
      method: "POST",
      path,
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { [INTERNAL_TOKEN_HEADER]: token }),
      },
      body: JSON.stringify(body),
    });
  const register = async (
    inputs: Input[] = [],
    change: Partial<GrantClaims> = {},
  ): Promise<RegisteredGrant> => {
    const answer = await postJson("/internal/egress-grants", registration(inputs, change));
    if (answer.status !== 201) throw new Error(`the gateway said ${answer.status}: ${answer.bytes}`);
    return answer.json() as unknown as RegisteredGrant;
  };

  return {
    redis,
    files,
    get gateway() {
      return gateway;
    },
    /** Brings a killed gateway back at the same address. */
    restart: async () => {
      gateway = await startComponent("egress-gateway", {
        ...settings,
        EGRESS_GATEWAY_PORT: new URL(gateway.url).port,
      });
    },
    call,
    fileCall,
    upload,
    postJson,
    register,
    stop: async () => {
      await Promise.all([toGateway.close(), toFiles.close()]);
      await gateway.kill();
      await files.stop();
      await redis.stop();
    },
  };
}

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/** What a worker sends to register a grant over the given inputs. */
export function registration(inputs: Input[], change: Partial<GrantClaims> = {}) {
  const claims: GrantClaims = {
    exec_id: newId(),
    tenant_id: "tenant",
    user_id: "user-1",
    session_key: NAMESPACE,
    input_files: inputs,
    read_sessions: [...new Set(inputs.map(({ session_id }) => session_id))],
    output_session_id: newId(),
    max_upload_bytes: 500_000_000,
    max_output_files: 50,
    max_requests: 1000,
    max_tool_calls: 200,
    lifetime_seconds: 300,
    ...change,
  };
  const files = inputs.map(({ id, session_id, name }) => ({ id, storage_session_id: session_id, name }));
  return { payload: { session_id: newId(), output_session_id: claims.output_session_id, files }, claims };
}

/** Calls as a runner makes them under a grant. */
export const asRunner = (grant: RegisteredGrant) => {
  const headers = { [GRANT_HEADER]: grant.egressGrantToken };
  const [first] = grant.payload.files;
  return {
    headers,
    list: (session = first?.storage_session_id ?? "", query = ""): Call => ({
      method: "GET",
      path: `/sessions/${encodeURIComponent(session)}/objects${query}`,
      headers,
    }),
    read: (file: { id: string; storage_session_id: string } | undefined = first): Call => ({
      method: "GET",
      path: `/sessions/${encodeURIComponent(file?.storage_session_id ?? "")}/objects/${encodeURIComponent(file?.id ?? "")}`,
      headers,
    }),
    write: (
      body: Call["body"],
      {
        id = newId(),
        name = "out.txt",
        session = grant.payload.output_session_id,
        extra = {} as Record<string, string>,
      } = {},
    ): Call => ({
      method: "PUT",
      path: `/sessions/${encodeURIComponent(session)}/objects/${id}`,
      headers: {
        ...headers,
        "content-type": "text/plain",
        [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(name),
        ...extra,
      },
      body,
    }),
  };
};
