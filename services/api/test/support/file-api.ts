/** The file routes in front of a real file server and Redis. The caller is named by a header, so that tests can be several. */
import {
  createHttpServer,
  createLog,
  createRedis,
  createRegistry,
  type HttpServer,
  InnerClient,
  loadConfig,
  type Registry,
} from "@svc/service-kit";
import {
  INTERNAL_TOKEN,
  type PrivateFileServer,
  startFileServer,
} from "@svc/test-kit/components/file-server";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import type { RecordLookup } from "../../src/files/lookup.ts";
import { fileRoutes } from "../../src/files/routes.ts";

export interface FileApi {
  url: string;
  redisServer: PrivateRedis;
  fileServer: PrivateFileServer;
  registry: Registry;
  lookupRecords: RecordLookup;
  stop: () => Promise<void>;
}

export const USER_HEADER = "x-test-user";

/** `wayTo`: answers the address by which the API reaches the file server at the given one. */
export async function startFileApi(
  env: Record<string, string> = {},
  wayTo: (fileServerUrl: string) => Promise<string> = async (url) => url,
): Promise<FileApi> {
  const redisServer = await startRedis();
  const fileServer = await startFileServer(redisServer.url);
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: redisServer.url,
    FILE_SERVER_URL: await wayTo(fileServer.url),
    ...env,
  });
  const log = createLog("api", config);
  const redis = createRedis(config, log, { use: "commands" });
  const client = new InnerClient({
    baseUrl: config.FILE_SERVER_URL,
    internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
    unreachable: "storage_unavailable",
  });
  const registry = createRegistry();
  const app: HttpServer = createHttpServer({
    log,
    lifecycle: { state: "running" },
    bodyLimit: config.SVC_HTTP_JSON_LIMIT,
    alwaysOn: [],
  });
  const lookupRecords = await fileRoutes(app, {
    config,
    log,
    fileServer: client,
    redis,
    registry,
    principalOf: (request) => ({ tenantId: "acme", userId: String(request.headers[USER_HEADER] ?? "u1") }),
    planLimitsOf: () => ({}),
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    redisServer,
    fileServer,
    registry,
    lookupRecords,
    stop: async () => {
      await app.close();
      await client.close();
      redis.disconnect();
      await fileServer.stop();
      await redisServer.stop();
    },
  };
}

export type FormPart =
  | { name: string; value: string }
  | { filename: string; body: Uint8Array | string; type?: string };

export const BOUNDARY = "test-boundary";

export function partHead(part: FormPart): string {
  if ("value" in part) return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${part.name}"\r\n\r\n`;
  const type = part.type === undefined ? "" : `Content-Type: ${part.type}\r\n`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${part.filename}"\r\n${type}\r\n`;
}

/** A form with its parts in exactly this order. */
export function formBytes(parts: readonly FormPart[]): Buffer<ArrayBuffer> {
  const pieces = parts.flatMap((part) => [
    Buffer.from(partHead(part)),
    Buffer.from("value" in part ? part.value : part.body),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
