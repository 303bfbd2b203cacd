/** A whole system whose components speak TLS to each other, each with a certificate of its own: docs/tls.md. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { componentEnvironment } from "@svc/cli/environment";
import type { Service } from "@svc/cli/instance";
import { loadSecrets } from "@svc/cli/secrets";
import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { createAuthority, tlsFiles } from "@svc/test-kit/credentials/certificates";
import { Api, output } from "@svc/test-kit/system/api";
import { freePort } from "@svc/test-kit/system/free-ports";
import { RUNNER } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { declare, drive } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const READY_MS = 60_000;
/** Each after those that it calls. A launcher in the runner's place has its certificate. */
const ORDER = ["file-server", "tool-call-server", "egress-gateway", "runner", "worker", "api"] as const;
const PORTS: Record<Service, string> = {
  api: "SERVICE_PORT",
  worker: "WORKER_HEALTH_PORT",
  runner: "PORT",
  "file-server": "FILE_SERVER_PORT",
  "tool-call-server": "TOOL_CALL_SERVER_PORT",
  "egress-gateway": "EGRESS_GATEWAY_PORT",
};

let system: System;
let redis: PrivateRedis;
let folder: string;
let api: Api;
const components = new Map<Service, RunningComponent>();

/** Beside a system of `./svc up`, whose secrets, jaild and image they use: all else is their own. */
beforeAll(async () => {
  const env = { SVC_TOPOLOGY: "separate", CANARY_INTERVAL_MS: "0" };
  [system, redis] = await Promise.all([startSystem({ env }), startRedis()]);
  folder = mkdtempSync(join(tmpdir(), "svc-tls-"));
  chmodSync(folder, 0o711);
  const authority = await createAuthority();
  const ports = Object.fromEntries(
    await Promise.all(ORDER.map(async (name) => [name, String(await freePort())])),
  ) as Record<Service, string>;
  const at = (name: Service) => `https://127.0.0.1:${ports[name]}`;
  const shared = {
    ...Object.fromEntries(ORDER.map((name) => [PORTS[name], ports[name]])),
    REDIS_URL: `unix://${redis.socket}`,
    STORAGE_DIR: join(folder, "objects"),
    FILE_SERVER_URL: at("file-server"),
    TOOL_CALL_SERVER_URL: at("tool-call-server"),
    EGRESS_GATEWAY_URL: at("egress-gateway"),
    SANDBOX_ENDPOINT: at("runner"),
    SANDBOX_FORWARD_TARGET: `127.0.0.1:${ports["egress-gateway"]}`,
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: ports["egress-gateway"],
    SVC_ALLOW_PRIVILEGED_COMPONENTS: "true",
  };
  const secrets = loadSecrets(system.instance.dataDir);
  for (const name of ORDER) {
    const issued = await authority.issue([name, "127.0.0.1"]);
    const process = name === "runner" ? RUNNER : name;
    const own = componentEnvironment(process, system.instance, secrets, env);
    const variables = { ...own, ...shared, ...tlsFiles(join(folder, name), authority.ca, issued) };
    if (!own.REDIS_URL) delete (variables as Partial<typeof shared>).REDIS_URL;
    components.set(name, await startComponent(process, variables));
  }
  const { url } = components.get("api") as RunningComponent;
  api = new Api(`${url}/v1`);
  let told = "";
  const isReady = async () => {
    const answer = await fetch(`${url}/v1/ready`);
    told = await answer.text();
    return answer.ok;
  };
  await until(isReady, READY_MS, () => told);
});

afterAll(async () => {
  for (const name of ORDER.toReversed()) await components.get(name)?.kill("SIGTERM");
  await redis.stop();
  rmSync(folder, { recursive: true });
  expect(await system.stop()).toEqual([]);
});

test("all but the API are https addresses", () => {
  const schemes = ORDER.map((name) => new URL(components.get(name)?.url ?? "").protocol);
  expect(schemes).toEqual(["https:", "https:", "https:", "https:", "https:", "http:"]);
});

test("files go in and out", async () => {
  const input = await api.stage("in.txt", "three");
  const answer = await api.exec({
    lang: "py",
    code: "open('out.txt', 'w').write(open('in.txt').read().upper())",
    files: [input],
  });
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  expect((await api.bytes(output(answer, "out.txt"))).toString()).toBe("THREE");
});

test("programs call tools", async () => {
  const tools = { double: ({ n }: { n: number }) => n * 2 };
  const start = { code: "print(await double(n=await double(n=4)))", tools: declare(Object.keys(tools)) };
  const { answer } = await drive(api, start, tools);
  expect(answer).toMatchObject({ status: "completed", stdout: "16\n" });
});
