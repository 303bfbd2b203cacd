/** The TypeScript client against the whole system: every method, errors as classes, ends, and answers of something else. */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import {
  ConnectionFailedError,
  ConnectionLostError,
  FileReferenceDeniedError,
  JobNotFoundError,
  type RunEvent,
  Svc,
  SvcError,
  type ToolEvent,
  UnauthorizedError,
  UnsupportedLanguageError,
} from "svc-client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const execute = promisify(execFile);
const shared = sharedSystem();
const svc = new Svc({ baseUrl: shared.url });
const signer = newSigner();
let second: SecondApi;

beforeAll(async () => {
  second = await startSecondApi(shared, {
    ...OPEN_LIMITS,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
});
afterAll(async () => {
  expect(await second?.stop()).toBe(0);
});

async function all<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const read: Event[] = [];
  for await (const event of events) read.push(event);
  return read;
}
const output = (events: readonly (RunEvent | ToolEvent)[]) =>
  events.map((event) => (event.type === "stdout" ? event.text : "")).join("");

describe("run", () => {
  test("a program, and its files", async () => {
    const code =
      "print(open('in.txt').read(), open('b.bin', 'rb').read()); open('out/a.csv', 'w').write('é')";
    const files = [
      { name: "in.txt", content: "inline" },
      { name: "b.bin", content: new Uint8Array([0, 255]) },
      { name: "out/.dirkeep", content: "" },
    ];
    const result = await svc.run({ language: "python", code, files });
    expect(result).toMatchObject({
      stdout: "inline b'\\x00\\xff'\n",
      code: 0,
      files: [{ name: "out/a.csv" }],
    });
    const [file] = result.files;
    expect(await file?.text()).toBe("é");
    expect(await file?.download()).toEqual(new TextEncoder().encode("é"));
    const stream = await file?.stream();
    expect(await new Response(stream).text()).toBe("é");
  });

  test("with an upload of bytes and of a path, and a file of a result", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-client-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "points.csv"), "x\n1\n");
    const uploads = [
      await svc.upload(join(folder, "points.csv")),
      await svc.upload(new Blob(["two"]), { name: "d/b.txt" }),
    ];
    expect(uploads.map(({ name }) => name)).toEqual(["points.csv", "d/b.txt"]);
    const copy = await svc.run({ language: "bash", code: "cat points.csv d/b.txt > c.txt", files: uploads });
    const [made] = copy.files.filter(({ name }) => name === "c.txt");
    expect(await made?.text()).toBe("x\n1\ntwo");
    const again = await svc.run({
      language: "bash",
      code: "cat c.txt",
      files: made === undefined ? [] : [made],
    });
    expect(again.stdout).toBe("x\n1\ntwo");
  });

  test("with an upload that is read-only, of an agent's and of a skill's files", async () => {
    const text = (name: string) => new Blob([name], { type: "text/plain" });
    const agent = await svc.upload(text("a"), { name: "a", kind: "agent", resourceId: "agent-1" });
    const skill = await svc.upload(text("s"), {
      name: "s",
      kind: "skill",
      resourceId: "skill-1",
      version: 2,
    });
    const fixed = await svc.upload(text("f"), { name: "f", readOnly: true, contentType: "text/csv" });
    expect([agent, skill, fixed]).toMatchObject([
      { kind: "agent", resource_id: "agent-1", contentType: "text/plain" },
      { kind: "skill", resource_id: "skill-1", version: 2 },
      { contentType: "text/csv" },
    ]);
    expect(await Promise.all([agent, skill, fixed].map((file) => file.text()))).toEqual(["a", "s", "f"]);
    const code = "cat a s f; stat -c %A f; echo more >> f";
    const result = await svc.run({ language: "bash", code, files: [agent, skill, fixed] });
    expect(result.stdout).toBe("asf-r--r--r--\n");
    expect(result.files.map(({ name, inherited }) => [name, inherited])).toEqual(
      ["a", "s", "f"].map((name) => [name, true]),
    );
    const two = svc.upload(text("x"), { kind: "agent", resourceId: "a\r\n\r\n--b" });
    await expect(two).rejects.toThrow("each one line");
    await expect(svc.upload(text("x"), { resourceId: "agent-1" })).rejects.toThrow("give its kind");
  });

  test.each(["50%22 off%0A.txt", `say "hi" é😀 'x';(1).txt`, "d/a b*.txt"])(
    "with an upload named %s, which it finds under that name",
    async (name) => {
      const file = await svc.upload(new Blob(["1,2"], { type: "text/csv" }), { name });
      expect([file.name, file.size, file.contentType]).toEqual([name, 3, "text/csv"]);
      const program = { language: "bash", code: 'cat "$1"', args: [name], files: [file] };
      expect(await svc.run(program)).toMatchObject({ stdout: "1,2", code: 0 });
    },
  );

  test("that fails is a result; one that is refused is an error of its class", async () => {
    expect(await svc.run({ language: "bash", code: "exit 7" })).toMatchObject({ code: 7 });
    const refused = await svc
      .run({ language: "nope", code: "" }, { requestId: "client-1" })
      .catch((error) => error);
    expect(refused).toBeInstanceOf(UnsupportedLanguageError);
    expect(refused).toMatchObject({ code: "unsupported_language", status: 400, requestId: "client-1" });
    const id = "A".repeat(21);
    const file = { id, storage_session_id: id, name: "a" };
    await expect(svc.run({ language: "bash", code: "", files: [file] })).rejects.toThrow(
      FileReferenceDeniedError,
    );
  });

  test("is run once for a key, and ends with its signal", async () => {
    const idempotencyKey = `client-${Math.random()}`;
    const program = { language: "python", code: "import uuid; print(uuid.uuid4())" };
    const [first, again] = [
      await svc.run(program, { idempotencyKey }),
      await svc.run(program, { idempotencyKey }),
    ];
    expect(again.stdout).toBe(first.stdout);
    const ended = new AbortController();
    const run = svc.run({ language: "bash", code: "sleep 50" }, { signal: ended.signal });
    ended.abort(new Error("enough"));
    await expect(run).rejects.toThrow("enough");
  });

  test("languages", async () => {
    expect((await svc.languages()).map(({ name }) => name)).toContain("python");
  });
});

describe("stream", () => {
  test("tells what the program writes, its files, and the result last", async () => {
    const code = "echo 1; sleep 0.2; echo 2; echo x > a.txt";
    const events = await all(svc.stream({ language: "bash", code }));
    expect(events[0]).toMatchObject({ type: "started", language: "bash" });
    expect(output(events)).toBe("1\n2\n");
    expect(events.at(-2)).toMatchObject({ type: "file", file: { name: "a.txt" } });
    const last = events.at(-1);
    expect(last).toMatchObject({ type: "result", result: { stdout: "1\n2\n" } });
    expect(last?.type === "result" && (await last.result.files[0]?.text())).toBe("x\n");
  });

  test("that is left, or whose signal is aborted, ends the run", async () => {
    const endless = { language: "bash", code: "echo begun; sleep 50" };
    for await (const event of svc.stream(endless)) if (event.type === "stdout") break;
    const ended = new AbortController();
    const read = async () => {
      for await (const event of svc.stream(endless, { signal: ended.signal }))
        if (event.type === "stdout") ended.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
  });

  test("of a request that is refused throws its error", async () => {
    await expect(all(svc.stream({ language: "nope", code: "" }))).rejects.toThrow(UnsupportedLanguageError);
  });
});

test("jobs: made, followed, waited for, listed, cancelled", async () => {
  const made = await svc.jobs.create({ language: "bash", code: "echo 1; echo x > a.txt" });
  const events = await all(svc.jobs.events(made.job_id));
  expect([output(events), events.at(-1)?.type]).toEqual(["1\n", "result"]);
  const job = await svc.jobs.wait(made.job_id);
  expect(job).toMatchObject({ status: "completed", result: { stdout: "1\n" } });
  expect(await job.result?.files[0]?.text()).toBe("x\n");
  expect((await svc.jobs.list()).jobs.map(({ job_id }) => job_id)).toContain(made.job_id);
  await svc.jobs.cancel(made.job_id);
  await expect(svc.jobs.get(made.job_id)).rejects.toThrow(JobNotFoundError);
  const endless = await svc.jobs.create({ language: "bash", code: "sleep 50" });
  await svc.jobs.cancel(endless.job_id);
  expect(await svc.jobs.wait(endless.job_id)).toMatchObject({ status: "cancelled" });
  await expect(all(svc.jobs.events(endless.job_id))).rejects.toMatchObject({ code: "execution_cancelled" });
});

describe("a program that calls functions", () => {
  const asked: unknown[] = [];
  const tools = svc.withTools({
    double: { description: "Doubles", parameters: { type: "object" }, run: ({ n }) => Number(n) * 2 },
    fail: () => {
      throw new Error("out of order");
    },
    note: async (input) => void asked.push(input),
  });
  const code = `
import asyncio
print(await asyncio.gather(double(n=1), double(n=2)))
await note(text="é")
try:
    await fail()
except Exception as error:
    print("caught", "out of order" in str(error))`;

  test("gets their results, and their errors", async () => {
    expect(await tools.run({ code })).toMatchObject({
      status: "completed",
      stdout: "[2, 4]\ncaught True\n",
      tool_calls_made: 4,
    });
    expect(asked).toEqual([{ text: "é" }]);
  });

  test("tells its calls and its output while it runs", async () => {
    const events = await all(tools.stream({ code }));
    expect(
      events.filter(({ type }) => type === "call").map((event) => "name" in event && event.name),
    ).toEqual(["double", "double", "note", "fail"]);
    expect(output(events)).toBe("[2, 4]\ncaught True\n");
    expect(events.at(-1)).toMatchObject({ type: "result", result: { status: "completed" } });
  });

  test("ends with its signal, also while a function works", async () => {
    const ended = new AbortController();
    const slow = svc.withTools({
      wait: () => {
        ended.abort(new Error("enough"));
        return new Promise(() => undefined);
      },
    });
    await expect(slow.run({ code: "await wait()" }, { signal: ended.signal })).rejects.toThrow("enough");
  });
});

describe("credentials", () => {
  test("a token, with and without /v1 in the address", async () => {
    const token = signer.mint({ claims: { sub: "client" } });
    for (const baseUrl of [second.url, `${second.url}/`, second.url.replace(/\/v1$/, "")]) {
      expect((await new Svc({ baseUrl, token }).run({ language: "bash", code: "echo 1" })).stdout).toBe(
        "1\n",
      );
    }
    const refused = new Svc({ baseUrl: second.url }).languages();
    await expect(refused).rejects.toThrow(UnauthorizedError);
  });

  test("sessions are the service's to offer", async () => {
    await expect(svc.sessions.list()).rejects.toMatchObject({ code: "not_found", status: 404 });
  });
});

describe("the package", () => {
  const ROOT = fileURLToPath(new URL("../../", import.meta.url));
  const blocks = [
    ...readFileSync(join(ROOT, "docs/clients.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```$/gm),
  ].map(([, code = ""]) => code);

  test("is made, installed in an empty folder, and does what docs/clients.md says", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-client-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    await execute("npm", ["run", "--silent", "pack:client"], { cwd: ROOT });
    const packed = join(ROOT, "packages/client/dist/svc-client-0.1.0.tgz");
    writeFileSync(join(folder, "package.json"), '{"type": "module"}');
    await execute("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], { cwd: folder });
    expect(blocks.length).toBeGreaterThan(4);
    const said: string[] = [];
    for (const [at, code] of blocks.entries()) {
      const file = join(folder, `block-${at}.ts`);
      writeFileSync(file, code.replaceAll("http://127.0.0.1:3112", shared.url));
      said.push(
        (await execute(process.execPath, [file], { cwd: folder })).stdout.replaceAll(/\s+/g, " ").trim(),
      );
    }
    expect(said).toEqual(["42 0", "7 done", "1 2 3 code 0", "completed 4", "completed done"]);
  });
});

describe("an answer that is not the service's", () => {
  const served = async (listener: RequestListener): Promise<Svc> => {
    const server = createServer(listener).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    return new Svc({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  };
  const program = { language: "bash", code: "" };
  const SATURATED = JSON.stringify({ error: "queue_saturated", message: "Later.", request_id: "r" });

  test("nothing listens", async () => {
    const nobody = new Svc({ baseUrl: "http://127.0.0.1:1" });
    await expect(nobody.run(program)).rejects.toThrow(ConnectionFailedError);
  });

  test.each<[string, number, string]>([
    ["a page of a proxy", 502, "<html>bad gateway</html>"],
    ["JSON of somebody else", 500, '{"message": "no"}'],
    ["no JSON", 200, "<html>"],
  ])("%s", async (_what, status, body) => {
    const other = await served((_request, response) => response.writeHead(status).end(body));
    await expect(other.run(program)).rejects.toMatchObject({ code: "connection_failed", status });
  });

  test("a code that is not known is an error without a class", async () => {
    const newer = await served((_request, response) =>
      response.writeHead(418).end('{"error": "brand_new", "message": "New.", "request_id": "r"}'),
    );
    const error = await newer.run(program).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SvcError);
    expect(error).toMatchObject({ code: "brand_new", status: 418, message: "New." });
  });

  test.each<[string, string, unknown]>([
    ["breaks off", 'event: started\ndata: {"session_id":"s"}\n\n', ConnectionLostError],
    ["is no JSON", "event: stdout\ndata: {\n\n", ConnectionLostError],
  ])("a stream that %s", async (_what, text, type) => {
    const other = await served((_request, response) =>
      response.writeHead(200, { "content-type": "text/event-stream" }).end(text),
    );
    await expect(all(other.stream(program))).rejects.toThrow(type as typeof Error);
  });

  test("a request is repeated where its error says that this is safe, as often as that is wanted", async () => {
    let requests = 0;
    const busy = await served((_request, response) => {
      requests++;
      response.writeHead(503, { "retry-after": "0" }).end(SATURATED);
    });
    await expect(busy.run(program)).rejects.toMatchObject({ code: "queue_saturated", retryAfter: 0 });
    expect(requests).toBe(3);
    const ended = new AbortController();
    const patient = await served((_request, response) => {
      response.writeHead(503, { "retry-after": "20" }).end(SATURATED);
      ended.abort(new Error("enough"));
    });
    await expect(patient.run(program, { signal: ended.signal })).rejects.toThrow("enough");
  });
});
