/** The routes of sessions before a real file server and Redis, with one session that has the given state. */
import { newId, type Principal, snapshotNamespaceOf } from "@svc/contracts";
import {
  createHttpServer,
  createLog,
  createRedis,
  type HttpServer,
  InnerClient,
  loadConfig,
} from "@svc/service-kit";
import { compress, type WrittenMember, writeArchive } from "@svc/session-archive";
import { sessionStoreFor } from "@svc/session-store";
import { INTERNAL_TOKEN, startFileServer } from "@svc/test-kit/components/file-server";
import { startRedis } from "@svc/test-kit/components/redis";
import { expect, type TestContext } from "vitest";
import { FileStorage } from "../../src/files/file-storage.ts";
import { persistentSessionRoutes } from "../../src/sessions/routes.ts";

const PRINCIPAL: Principal = { tenantId: "acme", userId: "u1" };
const NAMESPACE = "acme:user:u1";

export interface SessionApi {
  /** Of the session. */
  url: string;
  fileServerPid: number;
  /** The stored state, at the file server. */
  stateFile: string;
}

export async function startSessionApi(
  { onTestFinished }: TestContext,
  state: AsyncIterable<WrittenMember>,
): Promise<SessionApi> {
  const redisServer = await startRedis();
  onTestFinished(redisServer.stop);
  const fileServer = await startFileServer(redisServer.url);
  onTestFinished(fileServer.stop);
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: redisServer.url,
    FILE_SERVER_URL: fileServer.url,
  });
  const log = createLog("api", config);
  const redis = createRedis(config, log, { use: "commands" });
  onTestFinished(() => redis.disconnect());
  const client = new InnerClient({
    baseUrl: fileServer.url,
    internalToken: INTERNAL_TOKEN,
    unreachable: "storage_unavailable",
  });
  onTestFinished(() => client.close());
  const sessions = sessionStoreFor(redis, config);
  const app: HttpServer = createHttpServer({
    log,
    lifecycle: { state: "running" },
    bodyLimit: 1000,
    alwaysOn: [],
  });
  const storage = new FileStorage(client);
  persistentSessionRoutes(app, { sessions, storage, maxBytes: 1e9, principalOf: () => PRINCIPAL });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  onTestFinished(() => app.close());

  const chunks: Buffer[] = [];
  await compress(writeArchive(state), async (chunk) => void chunks.push(chunk));
  const archive = Buffer.concat(chunks);
  const snapshotId = newId();
  const of = { namespace: NAMESPACE, hint: undefined, language: "py", executionSession: newId(), snapshotId };
  const run = await sessions.begin(of);
  const stored = await fetch(`${fileServer.url}/sessions/${of.executionSession}/objects/${snapshotId}`, {
    method: "PUT",
    body: archive,
    headers: {
      "x-svc-internal-token": INTERNAL_TOKEN,
      "content-type": "application/zstd",
      "x-original-filename": "session-workspace.tar",
      "x-svc-namespace": snapshotNamespaceOf(NAMESPACE),
    },
  });
  expect(stored.status).toBe(200);
  expect(await sessions.settle(run, { kind: "stored", size: archive.length })).toBe("current");
  return {
    url: `${url}/v1/sessions/${run.sessionId}`,
    fileServerPid: fileServer.pid,
    stateFile: `${fileServer.directory}/sessions/${of.executionSession}/${snapshotId}`,
  };
}
