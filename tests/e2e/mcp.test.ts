/** The MCP server by both transports, with the official client: every tool does the same over HTTP and over standard input and output. */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { ContentBlock, Progress } from "@modelcontextprotocol/sdk/types.js";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import type { System } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  APPEAR_MS,
  bash,
  call,
  connectAlone,
  endWaiters,
  GONE_MS,
  startMcpSystem,
  TOOLS,
  TRANSPORTS,
  type Transport,
  tokenOf,
  transportOf,
  WAITING,
  WAITING_FOR_TEST,
} from "./support/mcp.ts";

const PNG = [0x89, 0x50, 0x4e, 0x47];
const NO_ID = "a".repeat(21);

let system: System;
const open = new Map<string, Promise<Client>>();
beforeAll(async () => {
  system = await startMcpSystem();
});
afterAll(async () => {
  await Promise.all([...open.values()].map(async (client) => (await client).close()));
  expect(await system?.stop()).toEqual([]);
});

/** The client of a user that all tests share: a process of its own takes seconds to start. */
function connect(kind: Transport, user = `reader-${kind}`): Promise<Client> {
  const client = open.get(user) ?? connectAlone(transportOf(system, kind, tokenOf(user)));
  open.set(user, client);
  return client;
}

describe.each(TRANSPORTS)("over %s", (kind) => {
  test("the tools are listed with their arguments", async () => {
    const client = await connect(kind);
    expect(client.getServerVersion()).toMatchObject({ name: "svc" });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS);
    expect(tools[0]?.inputSchema).toMatchObject({ type: "object", required: ["language", "code"] });
  });

  test("a program that succeeds, one that fails and one that is killed are results", async () => {
    const client = await connect(kind);
    expect(await call(client, "run_code", { language: "python", code: "print(6*7)" })).toMatchObject({
      text: "42",
      isError: false,
    });
    expect(await call(client, "run_code", bash("echo out; echo err >&2; exit 3"))).toMatchObject({
      text: "out\n[standard error]\nerr\n[exit code 3]",
      isError: false,
    });
    const late = await call(client, "run_code", bash("sleep 60", { timeout_ms: 300 }));
    expect(late).toMatchObject({ isError: false, text: expect.stringContaining("[exit code 137") });
    expect(await call(client, "run_code", bash(""))).toMatchObject({ text: "[no output, exit code 0]" });
  });

  test("a figure comes back as an image, and another file as a link that can be read", async () => {
    const client = await connect(kind);
    const code = [
      "import matplotlib.pyplot as plt",
      "plt.plot([1, 2]); plt.savefig('plot.png')",
      "open('table.csv', 'w').write('a,b')",
      "open('false.png', 'w').write('no picture')",
    ].join("\n");
    const { content } = await call(client, "run_code", { language: "python", code });
    expect(content.map(({ type }) => type)).toEqual(["text", "image", "resource_link", "resource_link"]);
    const [, image, , table] = content as [ContentBlock, ContentBlock, ContentBlock, ContentBlock];
    expect(image).toMatchObject({ mimeType: "image/png" });
    expect([...Buffer.from((image as { data: string }).data, "base64").subarray(0, 4)]).toEqual(PNG);
    expect(table).toMatchObject({ name: "table.csv", mimeType: "text/csv", size: 3 });
    const { contents } = await client.readResource({ uri: (table as { uri: string }).uri });
    expect(contents).toEqual([expect.objectContaining({ text: "a,b" })]);
  });

  test("an uploaded file and a new one are there for a program, and can be read and listed", async () => {
    const client = await connect(kind);
    const content = Buffer.from([0, 255, 10]).toString("base64");
    const { structured, text } = await call(client, "upload_file", {
      name: "d/x.bin",
      content,
      encoding: "base64",
    });
    expect(JSON.parse(text)).toEqual(structured);
    expect(structured).toEqual({ id: expect.any(String), session_id: expect.any(String), name: "d/x.bin" });
    const files = [structured, { name: "y", content: "new" }];
    expect(await call(client, "run_code", bash("od -An -tu1 d/x.bin; cat y", { files }))).toMatchObject({
      text: expect.stringMatching(/^ +0 255 +10\nnew/),
    });
    const { id, session_id } = structured;
    const read = await call(client, "read_file", { id, session_id });
    expect(read.content).toEqual([
      {
        type: "resource",
        resource: expect.objectContaining({ blob: content, uri: `svc://files/${session_id}/${id}` }),
      },
    ]);
    const listed = await call(client, "list_files", { session_id });
    expect(listed.structured).toEqual({ files: [expect.objectContaining({ id, name: "d/x.bin", size: 3 })] });
  });

  test("a session keeps variables and files, which are resources", async () => {
    const client = await connect(kind, `keeper-${kind}`);
    const session = "notebook-1";
    await call(client, "run_code", {
      language: "python",
      code: "import os; n = 6; os.mkdir('d'); open('d/ä b.txt', 'w').write('7')",
      session,
    });
    const code = "print(n * int(open('d/ä b.txt').read()))";
    expect(await call(client, "run_code", { language: "python", code, session })).toMatchObject({
      text: "42",
    });
    const { resources } = await client.listResources();
    expect(resources).toEqual([expect.objectContaining({ name: "d/ä b.txt", size: 1 })]);
    const { contents } = await client.readResource({ uri: resources[0]?.uri ?? "" });
    expect(contents).toEqual([expect.objectContaining({ text: "7" })]);
    expect((await call(client, "list_files", {})).structured).toEqual({
      sessions: [{ session, files: [expect.objectContaining({ name: "d/ä b.txt", size: 1 })] }],
    });
    const other = await connect(kind, `other-${kind}`);
    expect((await other.listResources()).resources).toEqual([]);
    await expect(other.readResource({ uri: resources[0]?.uri ?? "" })).rejects.toThrow("no such");
  });

  test("languages are listed", async () => {
    const { structured } = await call(await connect(kind), "list_languages", {});
    expect(structured.languages).toContainEqual(
      expect.objectContaining({
        name: "python",
        packages: expect.arrayContaining([expect.stringMatching(/^numpy /)]),
      }),
    );
  });

  test("output comes as progress while the program runs, in order", async () => {
    const client = await connect(kind);
    const seen: Progress[] = [];
    const marker = newMarker();
    // Each line is written only after the one before was seen here.
    const wait = WAITING_FOR_TEST;
    const code = `echo first; ${wait}; echo second; ${wait}; echo third >&2; ${wait}`;
    const running = call(client, "run_code", bash(code, { args: [marker] }), {
      onprogress: (progress) => seen.push(progress),
    });
    const told = () => seen.map(({ message }) => message ?? "").join("");
    for (const lines of ["first\n", "first\nsecond\n", "first\nsecond\nthird\n"]) {
      await until(() => told() === lines, APPEAR_MS, told);
      await endWaiters(marker);
    }
    expect(seen[0]).toEqual({ progress: 6, message: "first\n" });
    expect((await running).text).toMatch(/^first\nsecond\n\[standard error\]\nthird(\n\[|$)/);
    const steps = seen.map(({ progress }) => progress);
    expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
  });

  test("a cancelled call ends its program", async () => {
    const client = await connect(kind);
    const marker = newMarker();
    const caller = new AbortController();
    const running = call(client, "run_code", bash(WAITING, { args: [marker] }), { signal: caller.signal });
    running.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    caller.abort();
    await expect(running).rejects.toThrow();
    await until(() => processesWith(marker).length === 0, GONE_MS);
    expect(await call(client, "run_code", bash("echo next"))).toMatchObject({ text: "next" });
  });

  test("a client that goes away ends its program", async () => {
    const client = await connectAlone(transportOf(system, kind, tokenOf("leaver")));
    const marker = newMarker();
    call(client, "run_code", bash(WAITING, { args: [marker] })).catch(() => undefined);
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    await client.close();
    await until(() => processesWith(marker).length === 0, GONE_MS);
  });

  test.each<[string, string, Record<string, unknown>, string]>([
    ["an unknown language", "run_code", { language: "cobol", code: "" }, "The language is not supported."],
    ["a missing argument", "run_code", { language: "bash" }, "code: is required."],
    ["a wrong one", "run_code", bash("", { timeout_ms: "1" }), "timeout_ms: must be a number."],
    ["a wrong name", "upload_file", { name: "../x", content: "" }, "must not have empty, . or .. segments."],
    ["broken base64", "upload_file", { name: "x", content: "?", encoding: "base64" }, "must be base64"],
    ["an unknown file", "read_file", { id: NO_ID, session_id: NO_ID }, "The file does not exist."],
    [
      "an input of somebody else",
      "run_code",
      bash("", { files: [{ id: NO_ID, session_id: NO_ID, name: "x" }] }),
      "files[0] is not available to the caller.",
    ],
    [
      "a file that is too large",
      "run_code",
      bash("", { files: [{ name: "x", content: "x".repeat(2 ** 20 + 1) }] }),
      "at most 1 MiB",
    ],
  ])("%s is an error of the tool with the service's sentence", async (_what, name, args, sentence) => {
    const client = await connect(kind);
    expect(await call(client, name, args)).toMatchObject({
      isError: true,
      text: expect.stringContaining(sentence),
    });
  });

  test("another principal's file can neither be read nor used", async () => {
    const owner = await connect(kind, `owner-${kind}`);
    const { structured: file } = await call(owner, "upload_file", { name: "secret.txt", content: "mine" });
    const thief = await connect(kind, `thief-${kind}`);
    const { id, session_id } = file;
    expect(await call(thief, "read_file", { id, session_id })).toMatchObject({ isError: true });
    expect(await call(thief, "run_code", bash("cat secret.txt", { files: [file] }))).toMatchObject({
      isError: true,
    });
    await expect(thief.readResource({ uri: `svc://files/${session_id}/${id}` })).rejects.toThrow(
      "does not exist",
    );
    expect(await call(owner, "read_file", { id, session_id })).toMatchObject({ text: "mine" });
  });

  test("an unknown tool and a wrong address are errors of the protocol", async () => {
    const client = await connect(kind);
    await expect(client.callTool({ name: "rm", arguments: {} })).rejects.toThrow("There is no such tool.");
    for (const uri of [
      "file:///etc/passwd",
      "svc://files/x",
      `svc://files/${NO_ID}/../..`,
      `svc://sessions/${NO_ID}/%`,
    ])
      await expect(client.readResource({ uri }), uri).rejects.toThrow("no such resource");
  });

  test("output that looks like a message of the protocol stays text", async () => {
    const client = await connect(kind);
    const lines = [
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
      "event: message\ndata: {}\n\nContent-Length: 3",
    ].join("\n");
    const { text } = await call(client, "run_code", bash('cat "$0" >/dev/null; cat', { stdin: lines }), {
      onprogress: () => undefined,
    });
    expect(text).toBe(lines);
    expect((await client.listTools()).tools).toHaveLength(TOOLS.length);
  });
});
