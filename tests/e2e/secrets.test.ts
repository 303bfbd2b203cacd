/**
 * Which process holds which secret, read from the processes themselves: exactly what docs/secrets.md says. Arguments,
 * which every user of a machine can read, and logs hold none.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SECRET_NAMES } from "@svc/cli/secrets";
import { type ComponentName, componentsIn, serviceProcesses } from "@svc/cli/topology";
import { HOLDERS } from "@svc/service-kit/config/holders";
import type { VariableName } from "@svc/service-kit/config/variables";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { Api } from "@svc/test-kit/system/api";
import { treeOf } from "@svc/test-kit/system/holdings";
import { newMarker, until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const random = () => randomBytes(32).toString("base64url");
const publicKey = () => generateKeyPairSync("ed25519").publicKey;
const signer = newSigner();
const topology = { SVC_TOPOLOGY: process.env.SVC_TOPOLOGY || "combined" };
/** What the operator brings besides what the start makes by itself. */
const BROUGHT = {
  SVC_EGRESS_GRANT_SECRET_PREVIOUS: random(),
  SVC_METRICS_TOKEN: random(),
  OTEL_EXPORTER_OTLP_HEADERS: random(),
  SVC_TOKEN: random(),
  SVC_JWT_PUBLIC_KEY: signer.publicKey.export({ type: "spki", format: "der" }).toString("base64"),
  SVC_JWT_JWKS_JSON: JSON.stringify({ keys: [publicKey().export({ format: "jwk" })] }),
  S3_ACCESS_KEY: random(),
  S3_SECRET_KEY: random(),
  S3_SESSION_TOKEN: random(),
  SVC_REDIS_SENTINEL_PASSWORD: random(),
  REDIS_USERNAME: random(),
  REDIS_PASSWORD: random(),
};
const NAMES = Object.keys(HOLDERS) as VariableName[];
/** The Redis of a copy knows no users. A process for each component has tokens of its own calls instead of the one for all. */
const NOT_GIVEN = [
  ...["REDIS_USERNAME", "REDIS_PASSWORD"],
  ...(topology.SVC_TOPOLOGY === "separate" ? ["SVC_INTERNAL_SERVICE_TOKEN"] : []),
];

let system: System;
let api: Api;
/** Every confidential value of this copy. */
let values: Map<VariableName, string>;

beforeAll(async () => {
  system = await startSystem({ env: { ...BROUGHT, ...topology, SVC_JWT_KID: KID } });
  api = new Api(system.url);
  const made = readFileSync(join(system.instance.dataDir, "secrets.env"), "utf8").trim().split("\n");
  values = new Map([
    ...made.map(
      (line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)] as [VariableName, string],
    ),
    ...(Object.entries(BROUGHT) as [VariableName, string][]),
    ["REDIS_URL", `unix://${system.instance.redisSocket}`],
  ]);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const withToken = () => ({ headers: { authorization: `Bearer ${signer.mint()}` } });
const environmentOf = (pid: string | number) => readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
/** Empty for a process that has ended meanwhile: jails come and go. */
function environmentOfLiving(pid: string): string[] {
  try {
    return environmentOf(pid);
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}
const argumentsOf = (pid: string | number) => readFileSync(`/proc/${pid}/cmdline`, "latin1");

/** Variables that a text gives away, by their name or by their value under any name. */
function shownIn(lines: readonly string[]): string[] {
  const text = lines.join("\n");
  return NAMES.filter(
    (name) => lines.some((line) => line.startsWith(`${name}=`)) || text.includes(values.get(name) ?? name),
  ).sort();
}

test("every confidential variable has a value in this copy", () => {
  expect([...values.keys()].sort()).toEqual([...NAMES].sort());
  expect(new Set(values.values()).size).toBe(NAMES.length);
});

describe("the table of docs/secrets.md is what the processes hold", () => {
  const processes: ComponentName[] = [...serviceProcesses(topology), "redis", "jaild"];
  test("all processes run", () => {
    expect(
      system
        .state()
        .components.map(({ name }) => name)
        .sort(),
    ).toEqual([...processes].sort());
  });

  test.each(processes)("%s, with all that it started", (name) => {
    const expected = NAMES.filter(
      (variable) =>
        !NOT_GIVEN.includes(variable) &&
        componentsIn(name).some((component) => (HOLDERS[variable] as readonly string[]).includes(component)),
    ).sort();
    const pid = system.pid(name);
    expect(shownIn(environmentOf(pid))).toEqual(expected);
    const started = treeOf(pid).filter((child) => child !== String(pid));
    if (name === "jaild") expect(started.length).toBeGreaterThan(0);
    for (const child of started) expect(shownIn(environmentOfLiving(child))).toEqual([]);
  });

  test("the supervisor has what it was brought, and what it made not in its environment", () => {
    const brought = Object.keys(BROUGHT).sort();
    expect(shownIn(environmentOf(system.supervisorPid)).filter((name) => name !== "REDIS_URL")).toEqual(
      brought,
    );
    for (const made of SECRET_NAMES) expect(brought).not.toContain(made);
  });

  test("a program in a jail, seen from outside and by itself", async () => {
    const marker = newMarker();
    const leave = new AbortController();
    const code = `cat /proc/*/environ | tr '\\0' '\\n'; env; exec -a ${marker} sleep 100`;
    const run = api
      .tryExec({ lang: "bash", code }, { ...withToken(), signal: leave.signal })
      .catch(() => undefined);
    const found = () => treeOf(system.pid("jaild")).filter((pid) => readSafely(pid).startsWith(marker));
    try {
      await until(() => found().length > 0, 20_000);
      for (const pid of found()) expect(shownIn(environmentOf(pid))).toEqual([]);
    } finally {
      leave.abort();
      await run;
    }
    const look = "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; env";
    const seen = await api.exec({ lang: "bash", code: look }, withToken());
    expect(seen.stdout).toContain("HOME=/mnt/data");
    expect(shownIn(seen.stdout.split("\n"))).toEqual([]);
  });
});

/** Empty for a process that is gone. */
function readSafely(pid: string): string {
  try {
    return argumentsOf(pid);
  } catch {
    return "";
  }
}

test("no process has a secret in its arguments", () => {
  const lines = treeOf(system.supervisorPid).map(readSafely);
  expect(lines.length).toBeGreaterThan(8);
  // Where Redis listens is no secret by itself: only its own user may use the socket.
  const secret = [...values].filter(([name]) => name !== "REDIS_URL");
  expect(secret.filter(([, value]) => lines.some((line) => line.includes(value)))).toEqual([]);
});

test("no log has one", () => {
  const logs = readdirSync(system.instance.logsDir).map((name) =>
    readFileSync(join(system.instance.logsDir, name), "utf8"),
  );
  expect(logs.join("")).toContain('"SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER":"[set]"');
  // Public, and of use in a log of the runner.
  const open = ["SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY", "REDIS_USERNAME"];
  expect(
    [...values].filter(([name, value]) => !open.includes(name) && logs.some((log) => log.includes(value))),
  ).toEqual([]);
});
