/** TLS between components: who is served, who is believed, and certificates that are replaced. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Authority, createAuthority, tlsFiles } from "@svc/test-kit/credentials/certificates";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Component,
  callersOf,
  createHttpServer,
  type HttpServer,
  InnerClient,
  loadConfig,
  type TlsIdentity,
  tlsIdentity,
} from "../../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-tls-"));
const lines: string[] = [];
const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
let authority: Authority;
let stranger: Authority;
let server: HttpServer;
let identity: TlsIdentity;
let url: string;
let made = 0;

async function identityOf(
  component: Component,
  names: readonly string[],
  issuer = authority,
  believed = issuer,
): Promise<TlsIdentity> {
  const files = tlsFiles(join(folder, String(++made)), believed.ca, await issuer.issue(names));
  const config = loadConfig("runner", {
    ...files,
    SANDBOX_FORWARD_TARGET: "127.0.0.1:3190",
    SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
  });
  return tlsIdentity(component, config, log) as TlsIdentity;
}

beforeAll(async () => {
  [authority, stranger] = await Promise.all([createAuthority(), createAuthority()]);
  identity = await identityOf("file-server", ["file-server", "127.0.0.1"]);
  server = createHttpServer({
    log,
    lifecycle: { state: "running" },
    bodyLimit: 1024,
    tls: identity,
    callers: callersOf("file-server"),
    alwaysOn: ["/health"],
  });
  server.get("/health", async () => ({ status: "ok" }));
  server.get("/object", async () => ({ secret: 1 }));
  url = await server.listen({ port: 0, host: "127.0.0.1" });
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function ask(path: string, tls: TlsIdentity | undefined): Promise<number | string> {
  const client = new InnerClient({ baseUrl: url, unreachable: "storage_unavailable", tls });
  try {
    const { statusCode, body } = await client.send({ method: "GET", path });
    await body.text();
    return statusCode;
  } catch (error) {
    return String(((error as Error).cause as { code?: string } | undefined)?.code);
  } finally {
    await client.close();
  }
}

/** Without a certificate, and believing anybody. */
const askAsProbe = (path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const call = request(new URL(path, url), { rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume().once("end", () => resolve(answer.statusCode));
    });
    call.once("error", reject).end();
  });

test("it is an https address", () => {
  expect(url).toMatch(/^https:/);
});

test.each<[Component, number]>([
  ["api", 200],
  ["egress-gateway", 200],
  ["worker", 401],
  ["runner", 401],
  ["tool-call-server", 401],
])("a certificate of the %s: %i", async (component, status) => {
  const names = [`${component}.svc.internal`];
  expect(await ask("/object", await identityOf(component, names))).toBe(status);
});

test("a component without a name of its own is refused, and probes reach what is open alone", async () => {
  expect(await askAsProbe("/object")).toBe(401);
  expect(await askAsProbe("/health")).toBe(200);
  expect(await askAsProbe("/nothing")).toBe(401);
});

test("a certificate of another authority is not believed, whatever its name", async () => {
  // It believes our authority, so that it is the server that decides.
  expect(await ask("/object", await identityOf("api", ["api"], stranger, authority))).toBe(401);
});

test("the log says why a certificate was refused, and nothing of callers without one", async () => {
  const refusals = () =>
    lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "certificate refused");
  const before = refusals().length;
  await askAsProbe("/object");
  expect(refusals()).toHaveLength(before);
  const past = { notBefore: new Date(Date.now() - 7_200_000), notAfter: new Date(Date.now() - 3_600_000) };
  const issued = await authority.issue(["api"], past);
  const expired = { material: { cert: issued.cert, key: issued.key, ca: authority.ca } };
  expect(await ask("/object", expired as unknown as TlsIdentity)).toBe(401);
  expect(await ask("/object", await identityOf("worker", ["worker"]))).toBe(401);
  expect(
    refusals()
      .slice(before)
      .map(({ level, reason }) => [level, reason]),
  ).toEqual([
    [40, "CERT_HAS_EXPIRED"],
    [40, "it is of worker, which may not call"],
  ]);
});

test("a server of another authority, or with another name, is not believed", async () => {
  expect(await ask("/object", await identityOf("api", ["api"], stranger))).toBe("CERT_SIGNATURE_FAILURE");
  const elsewhere = url.replace("127.0.0.1", "localhost");
  const client = new InnerClient({
    baseUrl: elsewhere,
    unreachable: "storage_unavailable",
    tls: await identityOf("api", ["api"]),
  });
  await expect(client.send({ method: "GET", path: "/object" })).rejects.toMatchObject({
    code: "storage_unavailable",
    cause: { code: "ERR_TLS_CERT_ALTNAME_INVALID" },
  });
  await client.close();
});

test("a client that speaks plain HTTP gets nothing", async () => {
  await expect(fetch(url.replace("https:", "http:"))).rejects.toThrow();
});

test("a renewed certificate and a new authority are taken without a restart, half a renewal is not", async () => {
  const next = await createAuthority();
  const own = join(folder, "renewed");
  const issued = await authority.issue(["file-server", "127.0.0.1"]);
  const files = tlsFiles(own, authority.ca, issued);
  const config = loadConfig("file-server", { ...files, SVC_INTERNAL_SERVICE_TOKEN: newSecret() });
  const renewed = tlsIdentity("file-server", config, log) as TlsIdentity;
  const app = createHttpServer({
    log,
    lifecycle: { state: "running" },
    bodyLimit: 1024,
    tls: renewed,
    callers: ["api"],
    alwaysOn: [],
  });
  app.get("/object", async () => ({ secret: 1 }));
  const before = url;
  url = await app.listen({ port: 0, host: "127.0.0.1" });
  try {
    const old = await identityOf("api", ["api"]);
    const young = await identityOf("api", ["api"], next);
    expect([await ask("/object", old), await ask("/object", young)]).toEqual([200, "CERT_SIGNATURE_FAILURE"]);
    const later = await next.issue(["file-server", "127.0.0.1"]);
    writeFileSync(files.SVC_TLS_CERT_FILE as string, later.cert);
    renewed.lookAgain();
    renewed.lookAgain();
    expect(await ask("/object", old)).toBe(200);
    expect(lines.filter((line) => line.includes("not usable"))).toHaveLength(1);
    tlsFiles(own, next.ca, later);
    renewed.lookAgain();
    expect([await ask("/object", old), await ask("/object", young)]).toEqual(["CERT_SIGNATURE_FAILURE", 200]);
  } finally {
    url = before;
    await app.close();
  }
});

test("a certificate of somebody else, a key that is not its own and a missing file stop the start", async () => {
  await expect(identityOf("api", ["worker", "api-2"])).rejects.toThrow(
    /the certificate is not the api's: none of its DNS names is api or begins with api\. \(it has DNS:worker, DNS:api-2\)/,
  );
  const files = tlsFiles(join(folder, "mixed"), authority.ca, await authority.issue(["runner"]));
  const other = await authority.issue(["runner"]);
  writeFileSync(files.SVC_TLS_KEY_FILE as string, other.key);
  const start = (env: Record<string, string>) =>
    tlsIdentity("runner", loadConfig("runner", { ...runnerNeeds, ...env }), log);
  expect(() => start(files)).toThrow(
    "SVC_TLS_KEY_FILE is not the key of the certificate in SVC_TLS_CERT_FILE",
  );
  const { SVC_TLS_CERT_FILE: cert = "", SVC_TLS_KEY_FILE: key = "" } = files;
  for (const [wrong, why] of [
    [{ SVC_TLS_CA_FILE: "/nonexistent" }, "SVC_TLS_CA_FILE /nonexistent does not exist"],
    [{ SVC_TLS_CA_FILE: folder }, `SVC_TLS_CA_FILE ${folder} cannot be read: EISDIR`],
    [{ SVC_TLS_CA_FILE: key }, `SVC_TLS_CA_FILE ${key} is no certificate in PEM`],
    [{ SVC_TLS_CERT_FILE: key }, `SVC_TLS_CERT_FILE ${key} is no certificate in PEM`],
    [{ SVC_TLS_KEY_FILE: cert }, `SVC_TLS_KEY_FILE ${cert} is no private key without a passphrase in PEM`],
  ] as const) {
    expect(() => start({ ...files, ...wrong })).toThrow(why);
  }
});
const runnerNeeds = {
  SANDBOX_FORWARD_TARGET: "127.0.0.1:3190",
  SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
};

test("the launcher has a runner's certificate, and no other", async () => {
  const start = async (name: string) => {
    const files = tlsFiles(join(folder, `launcher-${name}`), authority.ca, await authority.issue([name]));
    return tlsIdentity(
      "launcher",
      loadConfig("launcher", { ...runnerNeeds, KVM_ENABLED: "true", ...files }),
      log,
    );
  };
  expect(await start("runner")).toBeDefined();
  await expect(start("launcher")).rejects.toThrow("the certificate is not the runner's");
});
