/** Runners that are found in DNS and speak TLS: which name a worker wants in the certificate of a real runner. */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, createLog, loadConfig, tlsIdentity } from "@svc/service-kit";
import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { type Authority, createAuthority, tlsFiles } from "@svc/test-kit/credentials/certificates";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { freePort } from "@svc/test-kit/system/free-ports";
import { RunnerFleet } from "@svc/worker/runner/fleet";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { a, type DnsServer, srv, startDns } from "../support/dns.ts";

const NAME = "runners.test";
const SERVICE = "_runner._tcp.runners.test";

let dns: DnsServer;
let jaild: Jaild;
let authority: Authority;
let folder: string;
let ofWorker: Record<string, string>;
let runner: RunningComponent | undefined;
let fleet: RunnerFleet | undefined;
const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-test-discovery-"));
  [dns, jaild, authority] = await Promise.all([
    startDns(),
    Jaild.start({ slots: 1, zygotes: false }),
    createAuthority(),
  ]);
  ofWorker = tlsFiles(join(folder, "worker"), authority.ca, await authority.issue(["worker"]));
});
afterEach(async () => {
  await fleet?.close();
  await runner?.kill();
});
afterAll(async () => {
  dns.close();
  await jaild.stop();
  rmSync(folder, { recursive: true });
});

/** A runner whose certificate has these names beside its own. Answers its port. */
async function startRunner(names: readonly string[]): Promise<number> {
  const port = await freePort();
  runner = await startComponent("runner", {
    ...tlsFiles(join(folder, "runner"), authority.ca, await authority.issue(["runner", ...names])),
    PORT: String(port),
    SANDBOX_FORWARD_TARGET: "127.0.0.1:3190",
    SANDBOX_JAIL_SOCKET: jaild.socket,
    SANDBOX_TOOL_DIRECTORY: jaild.tools,
    SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: publicKey,
    SANDBOX_MAX_CONCURRENT_JOBS: "1",
    SANDBOX_WARM_START: "off",
  });
  return port;
}

function fleetAt(endpoint: string, how: Config["SVC_RUNNER_DISCOVERY"]): RunnerFleet {
  const config = loadConfig("worker", {
    ...ofWorker,
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    EGRESS_GATEWAY_URL: "https://127.0.0.1:3190",
    SANDBOX_ENDPOINT: endpoint,
    SVC_RUNNER_DISCOVERY: how,
  });
  const log = createLog("worker", config);
  const made = new RunnerFleet(config, {
    log,
    tls: tlsIdentity("worker", config, log),
    resolver: dns.resolver,
  });
  fleet = made;
  return made;
}

/** Languages of the runner, which it tells to a worker's certificate alone; or why there was no answer. */
async function asked(found: RunnerFleet): Promise<string> {
  await expect.poll(() => Object.values(found.counts()).reduce((sum, count) => sum + count)).toBe(1);
  return found
    .ask((client) => client.json<unknown[]>({ method: "GET", path: "/api/v2/runtimes" }))
    .then(
      (runtimes) => (runtimes.length > 0 ? "runtimes" : "none"),
      (error: Error) => String((error.cause as { code?: string } | undefined)?.code),
    );
}

it("by address: the name that was looked up, and no address", async () => {
  const port = await startRunner([NAME]);
  dns.zone = { [NAME]: [a("127.0.0.1")] };
  expect(await asked(fleetAt(`https://${NAME}:${port}`, "dns"))).toBe("runtimes");
});

it("by address: a runner of another name is not called, though its certificate has the address", async () => {
  const port = await startRunner(["others.test", "127.0.0.1"]);
  dns.zone = { [NAME]: [a("127.0.0.1")] };
  const found = fleetAt(`https://${NAME}:${port}`, "dns");
  expect(await asked(found)).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  await expect.poll(() => found.counts()).toEqual({ ready: 0, busy: 0, away: 1 });
  expect(await found.notReady()).toBe("none of 1 runners is ready");
});

it("by service: the name in the record, which stays the address that is connected to", async () => {
  const port = await startRunner(["localhost"]);
  dns.zone = { [SERVICE]: [srv(port, "localhost")] };
  expect(await asked(fleetAt(`https://${SERVICE}`, "srv"))).toBe("runtimes");
});

it("by service: a certificate with the service's name alone is not enough", async () => {
  const port = await startRunner([NAME]);
  dns.zone = { [SERVICE]: [srv(port, "localhost")] };
  expect(await asked(fleetAt(`https://${SERVICE}`, "srv"))).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
});
