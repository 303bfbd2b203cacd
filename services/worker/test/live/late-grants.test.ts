/** A gateway that holds back the grant of a paused program's next round: a server of the test answers in its place, when it is told to. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { deadlinesFor } from "@svc/contracts";
import { createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { resumeOf, unsealedGrantOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Grants } from "../../src/grants/grants.ts";
import { workerMetrics } from "../../src/health/metrics.ts";

const resume = resumeOf();
const held = unsealedGrantOf(resume.execution_id);
const answer = Promise.withResolvers<void>();
const ended: string[] = [];
let server: Server;
let grants: Grants;
let deadlines: ReturnType<typeof deadlinesFor>;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const { ends } = (await json(request)) as { ends: { grant_id: string }[] };
    ended.push(...ends.map(({ grant_id }) => grant_id));
    if (request.url === "/internal/egress-grants") await answer.promise;
    response.setHeader("content-type", "application/json").end(JSON.stringify(held));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { privateKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
  });
  deadlines = deadlinesFor(config.MAX_RUN_TIMEOUT, config);
  const gateway = new InnerClient({
    baseUrl: `http://127.0.0.1:${port}`,
    unreachable: "upstream_unavailable",
  });
  const { stages } = workerMetrics(createRegistry());
  grants = new Grants(gateway, config, createLog("worker", config), stages);
});
afterAll(async () => {
  await grants.close();
  server.closeAllConnections();
  server.close();
});

it("a resume that is cancelled meanwhile does not wait for it, and it is revoked when it comes", async () => {
  grants.prepare(resume, deadlines, "grant of the round before");
  const taken = grants.take(resume, deadlines, AbortSignal.timeout(100));
  await expect(taken).rejects.toMatchObject({ name: "TimeoutError" });
  answer.resolve();
  await expect.poll(() => ended).toContain(held.grant_id);
});
