/** Components as processes of their own, each with the tokens of its own calls alone: which token opens what, and that all goes on as usual. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { INTERNAL_TOKEN_HEADER, newId } from "@svc/contracts";
import { PAIR_TOKENS } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { Api, output } from "@svc/test-kit/system/api";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { NO_CANARY } from "@svc/test-kit/system/open-limits";
import { declare, drive } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const APART = { ...ONE_BY_ONE, ...NO_CANARY };
const SHARED = "SVC_INTERNAL_SERVICE_TOKEN";
const PAIRS = Object.keys(PAIR_TOKENS) as (keyof typeof PAIR_TOKENS)[];
const [API_FILES, API_TOOLS, API_GATEWAY, WORKER_GATEWAY, GATEWAY_FILES, GATEWAY_TOOLS] = PAIRS;

type Component = "file-server" | "tool-call-server" | "egress-gateway";
type Route = [to: Component, method: string, path: string, opens: readonly (string | undefined)[]];

const objects = `/sessions/${newId()}/objects`;
const grant = `/internal/egress-grants/${newId()}`;
/** Every internal route, and the tokens that open it. */
const ROUTES: readonly Route[] = [
  ["file-server", "GET", `${objects}/${newId()}`, [API_FILES, GATEWAY_FILES]],
  ["file-server", "HEAD", `${objects}/${newId()}`, [API_FILES, GATEWAY_FILES]],
  ["file-server", "GET", objects, [API_FILES, GATEWAY_FILES]],
  ["file-server", "GET", `${objects}/${newId()}/metadata`, [API_FILES]],
  ["file-server", "GET", `${objects}/${newId()}/record`, [API_FILES]],
  ["file-server", "DELETE", `${objects}/${newId()}`, [API_FILES]],
  ["file-server", "GET", "/usage", [API_FILES]],
  ["file-server", "POST", `/sessions/${newId()}/commit`, [API_FILES]],
  ["file-server", "DELETE", `/sessions/${newId()}/pending`, [API_FILES]],
  ["file-server", "PUT", `/sessions/${newId()}/pending/${newId()}`, [API_FILES]],
  ["file-server", "PUT", `${objects}/${newId()}`, [GATEWAY_FILES]],
  ["file-server", "POST", "/inputs", [GATEWAY_FILES]],
  ["tool-call-server", "POST", "/sessions", [API_TOOLS]],
  ["tool-call-server", "DELETE", `/sessions/${newId()}`, [API_TOOLS]],
  ["tool-call-server", "GET", `/sessions/${newId()}/pending`, [API_TOOLS]],
  ["tool-call-server", "POST", `/sessions/${newId()}/results`, [API_TOOLS]],
  ["tool-call-server", "POST", "/tool-call", [GATEWAY_TOOLS]],
  ["tool-call-server", "POST", "/tool-calls", [GATEWAY_TOOLS]],
  ["egress-gateway", "POST", "/internal/egress-grants", [WORKER_GATEWAY]],
  ["egress-gateway", "POST", "/internal/egress-grants/prefetch", [WORKER_GATEWAY]],
  ["egress-gateway", "POST", "/internal/egress-grants/ends", [WORKER_GATEWAY]],
  ["egress-gateway", "POST", `${grant}/restore-result`, [WORKER_GATEWAY]],
  ["egress-gateway", "POST", `${grant}/revoke`, [WORKER_GATEWAY, API_GATEWAY]],
  ["egress-gateway", "POST", "/internal/ptc-callback-token", [WORKER_GATEWAY, API_GATEWAY]],
];

/** What the data folder has. */
function madeSecrets({ instance }: System): Map<string, string> {
  const lines = readFileSync(join(instance.dataDir, "secrets.env"), "utf8").trim().split("\n");
  return new Map(lines.map((line) => line.split("=", 2) as [string, string]));
}

async function answer({ instance }: System, [to, method, path]: Route, token: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${instance.ports[to]}${path}`, {
    method,
    headers: { [INTERNAL_TOKEN_HEADER]: token },
  });
  await response.arrayBuffer();
  return response.status;
}

/** Names of the tokens that a process holds. */
function heldBy(system: System, name: Parameters<System["pid"]>[0]): string[] {
  const lines = readFileSync(`/proc/${system.pid(name)}/environ`, "latin1").split("\0");
  const names: readonly string[] = [SHARED, ...PAIRS];
  return lines.map((line) => line.split("=", 1)[0] ?? "").filter((held) => names.includes(held));
}

async function works(system: System): Promise<void> {
  const api = new Api(system.url);
  const input = await api.stage("in.txt", "three");
  const ran = await api.exec({
    lang: "py",
    code: "open('out.txt', 'w').write(open('in.txt').read().upper())",
    files: [input],
  });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect((await api.bytes(output(ran, "out.txt"))).toString()).toBe("THREE");
  const tools = { double: ({ n }: { n: number }) => n * 2 };
  const start = { code: "print(await double(n=await double(n=4)))", tools: declare(Object.keys(tools)) };
  const driven = await drive(api, start, tools);
  expect(driven.answer).toMatchObject({ status: "completed", stdout: "16\n" });
}

describe("a token for each pair", () => {
  let system: System;
  let secrets: Map<string, string>;
  beforeAll(async () => {
    system = await startSystem({ env: APART });
    secrets = madeSecrets(system);
  });
  afterAll(async () => {
    expect(await system.stop()).toEqual([]);
  });

  test("is held by its two components alone, and nobody holds one for all", () => {
    for (const name of [
      "api",
      "worker",
      "runner",
      "file-server",
      "tool-call-server",
      "egress-gateway",
    ] as const) {
      const own = PAIRS.filter((pair) => (PAIR_TOKENS[pair] as readonly string[]).includes(name));
      expect(heldBy(system, name).sort(), name).toEqual(own.sort());
    }
  });

  test.each(ROUTES)("%s %s %s is open to its callers alone", async (...route) => {
    const [, , , opens] = route;
    const refused: string[] = [];
    for (const name of [SHARED, ...PAIRS]) {
      if ((await answer(system, route, secrets.get(name) ?? "")) === 401) refused.push(name);
    }
    expect(refused).toEqual([SHARED, ...PAIRS].filter((name) => !opens.includes(name)));
  });

  test("lets files go in and out, and programs call tools", () => works(system));
});

describe("SVC_INTERNAL_SERVICE_TOKEN of the operator", () => {
  let system: System;
  const token = newSecret();
  beforeAll(async () => {
    system = await startSystem({ env: { ...APART, [SHARED]: token } });
  });
  afterAll(async () => {
    expect(await system.stop()).toEqual([]);
  });

  test("is the one that all hold, and opens all", async () => {
    for (const name of ["api", "worker", "file-server", "tool-call-server", "egress-gateway"] as const)
      expect(heldBy(system, name), name).toEqual([SHARED]);
    expect(heldBy(system, "runner")).toEqual([]);
    const made = madeSecrets(system);
    for (const route of ROUTES) {
      expect(await answer(system, route, token), route.join(" ")).not.toBe(401);
      for (const pair of PAIRS) expect(await answer(system, route, made.get(pair) ?? "")).toBe(401);
    }
  });

  test("lets files go in and out, and programs call tools", () => works(system));
});
