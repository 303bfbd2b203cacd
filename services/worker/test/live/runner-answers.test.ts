/** What the worker takes of a runner that anybody may have taken over: a server of the test answers in its place. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ErrorCode, newId, ServiceError } from "@svc/contracts";
import { createLog, loadConfig } from "@svc/service-kit";
import { jobOf, unsealedGrantOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { freePort } from "@svc/test-kit/system/free-ports";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultOf } from "../../src/round/error-classification.ts";
import { Runner } from "../../src/runner/client.ts";
import { RunnerFleet } from "../../src/runner/fleet.ts";

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const MIB = 2 ** 20;
const { privateKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
let server: Server;
let address: string;
let answer: Answer;
let fleet: RunnerFleet;
let runner: Runner;

beforeAll(async () => {
  server = createServer((request, response) => {
    response.on("error", () => undefined);
    request.resume().on("end", () => answer(response, request));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    SANDBOX_ENDPOINT: `${address}/api/v2`,
    SANDBOX_RUNNER_URLS: "http://runner-two:2000, http://runner-three:2000/api/v2",
  });
  fleet = new RunnerFleet(config, { log: createLog("worker", config) });
  runner = new Runner(config, fleet);
});
afterAll(async () => {
  await fleet.close();
  server.closeAllConnections();
  server.close();
});

const job = jobOf();
const grant = unsealedGrantOf(job.execution_id);
const pause = () => ({
  paused: true,
  session_id: "label",
  pending_call_ids: ["call_001"],
  stdout: "",
  stderr: "",
  execution_time: 1,
  tool_calls_made: 1,
  runner_url: address,
  language: "python",
  version: "3.11",
  limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
});
const result = () => ({
  session_id: "label",
  stdout: "",
  stderr: "",
  files: [],
  code: 0,
  signal: null,
  message: null,
  status: null,
  wall_time: 1,
  cpu_time: 1,
  memory: 1,
  language: "python",
  version: "3.11",
  limits: { run_timeout_ms: 1, memory_bytes: 1 },
  timings: { setup_ms: 1, run_ms: 1, collect_ms: 1 },
  session_state_persisted: false,
  session_state_restore_failed: false,
});
const said = (body: unknown): Answer => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (response) => void response.end(text);
};
const executed = () => runner.execute(job, grant, new AbortController().signal);
const refused = () =>
  executed().then(
    () => "accepted",
    (error: unknown) => (error instanceof ServiceError ? error.code : (error as Error).name),
  );

describe("an answer of a runner", () => {
  it("that never ends is read to its bound, and its connection is closed", async () => {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    answer = (response) => {
      const chunk = Buffer.alloc(MIB, " ");
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += MIB;
        sent += MIB;
      };
      response.on("drain", more).on("close", closed.resolve);
      more();
    };
    expect(await refused()).toBe("sandbox_execution_failed");
    await closed.promise;
    expect(sent).toBeLessThan(64 * MIB);
  });

  it("that announces more than its bound is not waited for", async () => {
    const closed = Promise.withResolvers<void>();
    answer = (response) => {
      response.on("close", closed.resolve).writeHead(200, { "content-length": 10 ** 12 });
      const chunk = Buffer.alloc(MIB, " ");
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", more);
      more();
    };
    expect(await refused()).toBe("sandbox_execution_failed");
    await closed.promise;
  });

  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  const call = (input: string) =>
    JSON.stringify({ ...pause(), pending_calls: [] }).replace(
      '"pending_calls":[]',
      `"pending_calls":[{"call_id":"call_001","tool_name":"add","tool_input":${input}}]`,
    );
  const long = "x".repeat(100_000);
  const cases: [string, () => string | object][] = [
    ["is nested too deeply", () => call(nested(100_000))],
    ["holds too many values", () => call(`[${"0,".repeat(300_000)}0]`)],
    ["is not JSON", () => "{"],
    ["has a version of 100,000 characters", () => ({ ...result(), version: long })],
    ["has a message of 100,000 characters", () => ({ ...result(), message: long })],
    [
      "has a file name of 100,000 characters",
      () => ({
        ...result(),
        files: [{ id: newId(), name: long, storage_session_id: "x" }],
      }),
    ],
    ["has 100,000 deleted files", () => ({ ...result(), deleted_files: Array(100_000).fill("a") })],
    [
      "omits a name of 100,000 characters",
      () => ({
        ...result(),
        files_omitted: [{ name: long, reason: "name" }],
      }),
    ],
    [
      "asked for a tool of 100,000 characters",
      () => ({
        ...result(),
        programmatic_fault: { type: "unregistered_tool", tool: long },
      }),
    ],
    ["has more stdout than a program may write", () => ({ ...result(), stdout: "x".repeat(131_073) })],
    ["has more stderr than that and notes", () => ({ ...result(), stderr: "é".repeat(131_073) })],
    ["pauses with more output than that", () => ({ ...pause(), stdout: "x".repeat(131_073) })],
    ["pauses at 100,000 calls", () => ({ ...pause(), pending_call_ids: Array(100_000).fill("call_001") })],
    ["pauses at a call that is not an id", () => ({ ...pause(), pending_call_ids: ["call\n001"] })],
    ["pauses at an address of 100,000 characters", () => ({ ...pause(), runner_url: `http://${long}` })],
  ];
  it.each(cases)("that %s is refused", async (_, body) => {
    answer = said(body());
    expect(await refused()).not.toBe("accepted");
  });

  it("is taken when it keeps all bounds", async () => {
    for (const body of [
      result(),
      { ...result(), stdout: "\u0000".repeat(65_536), stderr: "é".repeat(65_536) },
    ]) {
      answer = said(body);
      expect(await executed()).toEqual(body);
    }
    answer = said(call(nested(64)));
    expect(await executed()).toMatchObject({ paused: true });
  });
});

it("where one of two runners has no slot and the other is away, the run waits for a slot", async () => {
  answer = (response) => void response.writeHead(503).end(JSON.stringify({ error: "runner_busy" }));
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    SANDBOX_ENDPOINT: `${address},http://127.0.0.1:${await freePort()}`,
  });
  const two = new RunnerFleet(config, { log: createLog("worker", config) });
  try {
    // In whichever order they are asked.
    for (let times = 0; times < 3; times++) {
      const refused = new Runner(config, two).execute(job, grant, new AbortController().signal);
      await expect(refused).rejects.toMatchObject({ code: "runner_busy" });
    }
  } finally {
    await two.close();
  }
});

describe("the address of a paused program", () => {
  it.each(["http://runner-two:2000", "http://runner-three:2000", "http://runner-three:2000/api/v2"])(
    "may be one that is configured: %s",
    async (runner_url) => {
      answer = said({ ...pause(), runner_url });
      expect(await executed()).toMatchObject({ runner_url });
    },
  );

  it.each([
    "http://169.254.169.254",
    "http://runner-two:2001",
    "https://runner-two:2000",
    "http://runner-two:2000@evil",
    "http://runner-two:2000/other",
    "redis://runner-two:2000",
    "",
  ])("that is none of them is a fault of the service, which nobody repeats: %j", async (runner_url) => {
    answer = said({ ...pause(), runner_url });
    const error = await executed().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "internal_error" satisfies ErrorCode });
    expect(String((error as Error).cause)).toContain("SANDBOX_RUNNER_URLS");
    expect(faultOf(error)).toBe("final");
  });

  it("that is none of them is asked for nothing", async () => {
    let asked = 0;
    answer = (response, { url }) => {
      // The fleet asks every runner for its health, whenever it likes.
      if (url !== "/api/v2/health") asked++;
      response.end("{}");
    };
    const elsewhere = address.replace("127.0.0.1", "localhost");
    const resume = { runner_url: elsewhere, round: 2, answered_call_ids: ["call_001"] };
    const { signal } = new AbortController();
    await expect(runner.resume(job, resume, grant, signal)).rejects.toMatchObject({
      code: "execution_not_found",
    });
    await expect(runner.discard(job, elsewhere)).rejects.toMatchObject({ code: "execution_not_found" });
    expect(asked).toBe(0);
    await runner.discard(job, address);
    expect(asked).toBe(1);
  });
});

describe("a resume", () => {
  const resumed = () => {
    const resume = { runner_url: address, round: 2, answered_call_ids: ["call_001"] };
    return runner.resume(job, resume, grant, new AbortController().signal);
  };
  const refuses = (code: ErrorCode): Answer => {
    return (response) => {
      response.writeHead(503, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: code, message: "No." }));
    };
  };

  it.each<[ErrorCode, why: string, thrown: ErrorCode]>([
    ["starting_up", "a runner that starts has lost the program", "execution_not_found"],
    ["shutting_down", "so has one that ends", "execution_not_found"],
    ["runner_busy", "one without a free slot still keeps it", "runner_busy"],
  ])("that is refused with %s: %s", async (code, _why, thrown) => {
    answer = refuses(code);
    await expect(resumed()).rejects.toMatchObject({ code: thrown });
  });
});
