/** The small inputs of a run come in one call, and one by one from a gateway that does not know it. */
import { once } from "node:events";
import { createServer, request as forward, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { canonicalJson, ledgerKey, signManifest } from "@svc/capabilities";
import { MAX_BATCH_BYTES, newId, type RegisteredGrant } from "@svc/contracts";
import type { Input } from "@svc/test-kit/components/gateway";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Runner, requestOf, startSystemOfRunner } from "../support/runner.ts";

const SHOW = 'find . -mindepth 1 ! -name main.sh -printf "%p %y %m %s\\n" | sort; cat ./*.txt';

let made: Awaited<ReturnType<typeof startSystemOfRunner>>;
let runner: Runner;
let older: Server;
let runnerOfOlder: Runner;
let store: Redis;

/** What came through to an older gateway: one that knows no batches. */
const asked: string[] = [];
function olderGateway(target: URL): Server {
  return createServer((incoming, response) => {
    const { method = "GET", url: path = "/", headers } = incoming;
    if (path !== "/ready") asked.push(`${method} ${path.replace(/ceg1[^/]*/g, "*")}`);
    if (path === "/inputs") {
      incoming.resume().once("end", () => response.writeHead(404).end('{"error":"not_found"}'));
      return;
    }
    const { hostname, port } = target;
    const onward = forward({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    incoming.pipe(onward);
  });
}

beforeAll(async () => {
  made = await startSystemOfRunner({ slots: 4 });
  const env = { SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: made.keys.publicKey };
  runner = await made.startRunner(env);
  older = olderGateway(new URL(made.gateway.gateway.url));
  await once(older.listen(0, "127.0.0.1"), "listening");
  const port = String((older.address() as AddressInfo).port);
  runnerOfOlder = await made.startRunner({
    ...env,
    SANDBOX_FORWARD_TARGET: `127.0.0.1:${port}`,
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: port,
  });
  store = new Redis(made.gateway.redis.socket).on("error", () => {});
});
afterAll(async () => {
  store?.disconnect();
  await made?.stop();
  older?.closeAllConnections();
  older?.close();
});

function send(grant: RegisteredGrant, by: Runner, code = SHOW) {
  const request = requestOf(grant, code);
  const bound = { body: canonicalJson(request), grant: grant.egressGrantToken };
  const now = Math.floor(Date.now() / 1000);
  const execution_manifest = signManifest(made.keys.signing, grant.executionManifestClaims, bound, {
    now,
    ttl: 300,
  });
  return by({
    method: "POST",
    path: "/execute",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...request, egress_grant: grant.egressGrantToken, execution_manifest }),
  });
}

/** Requests of the grant that the ledger has counted. */
const counted = async ({ grant_id }: RegisteredGrant) =>
  (JSON.parse((await store.get(ledgerKey(grant_id))) ?? "{}") as Record<string, number>).request_count;

/** Answered requests of the gateway by route, of those that read. */
async function routes(): Promise<Record<string, number>> {
  const { bytes } = await made.gateway.call({ method: "GET", path: "/metrics" });
  const lines = bytes
    .toString()
    .matchAll(
      /^svc_egress_requests_total\{route="(\/inputs|\/sessions[^"]*)".*outcome="answered".*\} (\d+)$/gm,
    );
  return Object.fromEntries([...lines].map(([, route = "", count]) => [route, Number(count)]));
}

async function inputs(): Promise<Input[]> {
  const session = newId();
  const files = [
    await made.gateway.upload("a.txt", "first\n", session),
    await made.gateway.upload("b.txt", "second\n", newId(), true),
    await made.gateway.upload("empty", "", session),
    await made.gateway.upload("large.bin", Buffer.alloc(MAX_BATCH_BYTES + 1), newId()),
  ];
  await made.gateway.upload("made/.dirkeep", "", session);
  return files;
}

const SHOWN = [
  "./a.txt f 644 6",
  "./b.txt f 444 7",
  "./empty f 644 0",
  `./large.bin f 644 ${MAX_BATCH_BYTES + 1}`,
  "./made d 755 4096",
  "first",
  "second",
  "",
];
const shown = (answer: Awaited<ReturnType<Runner>>) =>
  String(answer.json().stdout)
    .replace(/(?<=made d 755) \d+/, " 4096")
    .split("\n");

describe("the inputs of a run", () => {
  it("come in one call, and a large one by itself; each counts as one request, and each session", async () => {
    const grant = await made.gateway.register(await inputs());
    const before = await routes();
    expect(shown(await send(grant, runner))).toEqual(SHOWN);
    const after = await routes();
    const object = "/sessions/:sessionHandle/objects/:objectHandle";
    expect((after["/inputs"] ?? 0) - (before["/inputs"] ?? 0)).toBe(1);
    expect((after[object] ?? 0) - (before[object] ?? 0)).toBe(1);
    expect(after["/sessions/:sessionHandle/objects"]).toBe(before["/sessions/:sessionHandle/objects"]);
    expect(await counted(grant)).toBe(7);
  });

  it("come one by one from a gateway of an older version, and cost the same", async () => {
    const grant = await made.gateway.register(await inputs());
    asked.length = 0;
    expect(shown(await send(grant, runnerOfOlder))).toEqual(SHOWN);
    expect(await counted(grant)).toBe(7);
    expect(asked.filter((call) => call === "GET /sessions/*/objects/*")).toHaveLength(4);
    expect(asked.filter((call) => call === "GET /sessions/*/objects")).toHaveLength(3);
  });

  it("are named when one of them cannot be had", async () => {
    const gone = { id: newId(), session_id: newId(), name: "gone.txt" };
    const grant = await made.gateway.register([await made.gateway.upload("a.txt", "1"), gone]);
    for (const by of [runner, runnerOfOlder]) {
      const answer = await send(grant, by);
      expect([answer.status, answer.json().error]).toEqual([502, "input_unavailable"]);
      expect(answer.json().details).toEqual([
        { path: "files[2].name", problem: expect.stringContaining("gone.txt") },
      ]);
    }
  });
});
