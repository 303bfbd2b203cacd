/** The MCP server by both transports, with the official client, against a system that asks for credentials and keeps sessions. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult, ContentBlock, Progress } from "@modelcontextprotocol/sdk/types.js";
import { ROOT } from "@svc/cli/instance";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { killProcess } from "@svc/test-kit/jail/host";
import { readPage } from "@svc/test-kit/programs/page";
import { descriptorsOf, total } from "@svc/test-kit/system/descriptors";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { readOrEmpty } from "@svc/test-kit/system/read-file";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const GONE_MS = 10_000;
const APPEAR_MS = 30_000;
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const PNG = [0x89, 0x50, 0x4e, 0x47];
const NO_ID = "a".repeat(21);
const TOOLS = ["run_code", "upload_file", "list_files", "read_file", "list_languages"];

const signer = newSigner();
const env = {
  ...OPEN_LIMITS,
  SVC_PERSIST_SESSIONS: "true",
  LOCAL_MODE: "false",
  SVC_JWT_PUBLIC_KEY: signer.pem,
  SVC_JWT_KID: KID,
};
const tokenOf = (sub: string) => signer.mint({ claims: { sub } });

let system: System;
let origin: string;
beforeAll(async () => {
  system = await startSystem({ env });
  ({ origin } = new URL(system.url));
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const open = new Map<string, Promise<Client>>();
afterAll(async () => {
  await Promise.all([...open.values()].map(async (client) => (await client).close()));
});

type Transport = "http" | "stdio";
const TRANSPORTS: Transport[] = ["http", "stdio"];

function transportOf(kind: Transport, token: string) {
  if (kind === "http") {
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    return new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit });
  }
  return new StdioClientTransport({
    command: join(ROOT, "svc"),
    args: ["mcp", "--url", system.url],
    env: { PATH: process.env.PATH ?? "", SVC_TOKEN: token },
  });
}

/** A client of its own. Its owner closes it. */
async function connectAlone(transport: ReturnType<typeof transportOf>): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  // The types of the SDK itself do not agree with exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  return client;
}

/** The client of a user that all tests share: a process of its own takes seconds to start. */
function connect(kind: Transport, user = `reader-${kind}`): Promise<Client> {
  const client = open.get(user) ?? connectAlone(transportOf(kind, tokenOf(user)));
  open.set(user, client);
  return client;
}

interface Called {
  text: string;
  isError: boolean;
  content: ContentBlock[];
  structured: Record<string, unknown>;
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  options: Parameters<Client["callTool"]>[2] = {},
): Promise<Called> {
  const result = (await client.callTool({ name, arguments: args }, undefined, options)) as CallToolResult;
  const [first] = result.content;
  return {
    text: first?.type === "text" ? first.text : "",
    isError: result.isError === true,
    content: result.content,
    structured: result.structuredContent ?? {},
  };
}

const bash = (code: string, more: Record<string, unknown> = {}) => ({ language: "bash", code, ...more });

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
    // The second line is written only after the first was seen here: the test ends the process that the program waits for.
    const code = `echo first; python3 -c 'import time; time.sleep(60)' "$1" 2>/dev/null; echo second; echo third >&2`;
    const running = call(client, "run_code", bash(code, { args: [marker] }), {
      onprogress: (progress) => seen.push(progress),
    });
    await until(() => seen.length > 0, APPEAR_MS);
    expect(seen).toEqual([{ progress: 6, message: "first\n" }]);
    await until(() => waitersOf(marker).length > 0, APPEAR_MS);
    for (const pid of waitersOf(marker)) killProcess(pid);
    const { text } = await running;
    expect(text).toMatch(/^first\nsecond\n\[standard error\]\n/);
    const messages = seen.map(({ message }) => message ?? "").join("");
    expect(messages).toContain("second\n");
    expect(messages).toContain("third\n");
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
    const client = await connectAlone(transportOf(kind, tokenOf("leaver")));
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
      "at most 1048576",
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

const WAITING = `python3 -c 'import time; time.sleep(60)' "$1"`;

/** Ids of the processes that a program with the marker waits for. */
function waitersOf(marker: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    const words = /^\d+$/.test(name) ? readOrEmpty(`/proc/${name}/cmdline`).split("\0") : [];
    return words[0] === "python3" && words.includes(marker) ? [Number(name)] : [];
  });
}

/** Routes of the requests with this id, in the order of their ends. */
function routesOf(requestId: string): string[] {
  return readFileSync(join(system.instance.logsDir, "api.log"), "utf8")
    .split("\n")
    .filter((line) => line.includes(requestId) && line.includes('"msg":"request"'))
    .map((line) => (JSON.parse(line) as { route: string }).route);
}

describe("POST /mcp", () => {
  const message = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 1, method, params });
  const post = (body: unknown, headers: Record<string, string> = {}, at = origin) =>
    fetch(`${at}/mcp`, {
      method: "POST",
      headers: { ...HEADERS, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const as = (user: string) => ({ authorization: `Bearer ${tokenOf(user)}` });

  test("demands a credential, as every route does", async () => {
    for (const headers of [{}, { authorization: "Bearer svc_" }, { "x-api-key": "k" }]) {
      const refused = await post(message("tools/list"), headers);
      expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    }
  });

  test("has no stream of its own and no session to delete", async () => {
    for (const method of ["GET", "DELETE"]) {
      const answer = await fetch(`${origin}/mcp`, { method, headers: as("reader") });
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
    }
  });

  test("runs a call as its caller, under its request id", async () => {
    const id = newMarker();
    const args = { name: "run_code", arguments: bash("echo hello") };
    const answer = await post(message("tools/call", args), { ...as("logged"), "x-request-id": id });
    expect(answer.headers.get("x-request-id")).toBe(id);
    expect(await answer.text()).toContain('"text":"hello"');
    await expect.poll(() => routesOf(id)).toEqual(["/v1/exec", "/mcp"]);
  });

  test("refuses what is no message, and lists of messages", async () => {
    const broken = [
      "{",
      "[]",
      '"x"',
      "{}",
      '{"jsonrpc":"1.0","id":1,"method":"ping"}',
      JSON.stringify([message("ping")]),
    ];
    for (const body of broken) {
      const answer = await post(body, as("reader"));
      expect([body, answer.status]).toEqual([body, 400]);
    }
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`;
    expect((await post(deep, as("reader"))).status).toBe(400);
    const giant = message("tools/call", { name: "run_code", arguments: bash("x".repeat(9 * 2 ** 20)) });
    expect((await post(giant, as("reader"))).status).toBe(413);
    expect((await post(message("ping"), { ...as("reader"), accept: "application/json" })).status).toBe(406);
    expect((await post(message("ping"), { ...as("reader"), "mcp-protocol-version": "1" })).status).toBe(400);
    expect((await post(message("ping"), as("reader"))).status).toBe(200);
  });

  test("a cancelling notification of another caller, or without the label, ends nothing", async () => {
    const initialized = await post(
      message("initialize", {
        protocolVersion: "2025-06-18",
        capabilities: {},
        clientInfo: { name: "t", version: "1" },
      }),
      as("victim"),
    );
    const label = { "mcp-session-id": initialized.headers.get("mcp-session-id") ?? "" };
    await initialized.text();
    const marker = newMarker();
    const args = { name: "run_code", arguments: bash(WAITING, { args: [marker] }) };
    const running = post(message("tools/call", args), { ...as("victim"), ...label }).then((answer) =>
      answer.text(),
    );
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    expect((await post(cancel, { ...as("attacker"), ...label })).status).toBe(202);
    expect((await post(cancel, as("victim"))).status).toBe(202);
    expect(processesWith(marker).length).toBeGreaterThan(0);
    expect((await post(cancel, { ...as("victim"), ...label })).status).toBe(202);
    await until(() => processesWith(marker).length === 0, GONE_MS);
    expect(await running).not.toContain("result");
  });

  test("a thousand calls that are opened and dropped leave nothing behind", async () => {
    await post(message("tools/list"), as("flood")).then((answer) => answer.text());
    const pid = system.pid("api");
    const before = total(descriptorsOf(pid));
    const headers = { ...HEADERS, ...as("flood") };
    const body = JSON.stringify(message("tools/list"));
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 100 }, () => dropped(`${origin}/mcp`, headers, body)));
    }
    await until(() => total(descriptorsOf(pid)) <= before + 10, GONE_MS);
    expect(await (await post(message("tools/list"), as("flood"))).text()).toContain("run_code");
  });

  test("is limited, and the calls that a message makes are", async () => {
    const limited = await startSecondApi(system, { ...env, MAX_REQUESTS: "1", FETCH_MAX_REQUESTS: "3" });
    try {
      const at = new URL(limited.url).origin;
      const args = { name: "run_code", arguments: bash("echo hello") };
      const run = async () => (await post(message("tools/call", args), as("limited"), at)).text();
      expect(await run()).toContain('"text":"hello"');
      expect(await run()).toMatch(/"isError":true/);
      expect((await post(message("ping"), as("limited"), at)).status).toBe(200);
      expect((await post(message("ping"), as("limited"), at)).status).toBe(429);
    } finally {
      await limited.stop();
    }
  });

  test("is not there with SVC_MCP=false", async () => {
    const without = await startSecondApi(system, { ...env, SVC_MCP: "false" });
    try {
      expect((await post(message("ping"), as("reader"), new URL(without.url).origin)).status).toBe(404);
    } finally {
      await without.stop();
    }
  });

  test("without authentication serves this machine and no web page", async () => {
    const local = new URL(sharedSystem().url).origin;
    expect((await post(message("ping"), {}, local)).status).toBe(200);
    expect((await post(message("ping"), { origin: "http://evil.example" }, local)).status).toBe(403);
    expect(await statusWithHost(`${local}/mcp`, "evil.example", JSON.stringify(message("ping")))).toBe(403);
  });
});

describe("docs/mcp.md", () => {
  const page = readPage("docs/mcp.md");
  const token = tokenOf("page");
  const here = (text: string) =>
    text
      .replaceAll("/path/to/svc", ROOT)
      .replaceAll("https://code.example.com", origin)
      .replaceAll("svc_YOUR_KEY", token);

  interface Entry {
    command?: string;
    args?: string[];
    env?: Record<string, string>;
    url?: string;
    headers?: Record<string, string>;
  }
  const servers = () =>
    page.blocks("json").map((block) => {
      const { mcpServers, servers = mcpServers } = JSON.parse(here(block)) as Record<string, { svc: Entry }>;
      return servers?.svc ?? {};
    });

  test("every configuration reaches the service", async () => {
    expect(servers().map(({ url, command }) => url ?? command)).toHaveLength(5);
    for (const { command, args = [], env: more = {}, url, headers = {} } of servers()) {
      const variables = {
        PATH: process.env.PATH ?? "",
        SVC_TOKEN: token,
        ...system.environment,
        ...more,
      };
      const transport =
        command === undefined
          ? new StreamableHTTPClientTransport(new URL(url ?? ""), { requestInit: { headers } })
          : new StdioClientTransport({ command, args, env: variables });
      const client = await connectAlone(transport);
      try {
        expect(await call(client, "run_code", bash("echo here"))).toMatchObject({ text: "here" });
      } finally {
        await client.close();
      }
    }
  });

  test("LibreChat's entry has the address and the header of the others", () => {
    const [entry = ""] = page.blocks("yaml");
    const [http] = servers().filter(({ url }) => url !== undefined);
    expect(here(entry)).toContain(`url: ${http?.url}\n`);
    expect(here(entry)).toContain(`Authorization: "${http?.headers?.Authorization}"`);
  });

  test("the first request prints 42, and the tools are those of the table", async () => {
    const [block = ""] = page.blocks("sh");
    const local = new URL(sharedSystem().url).origin;
    const script = block.replaceAll("http://127.0.0.1:3112", local);
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script]);
    expect(stdout).toContain('{"content":[{"type":"text","text":"42"}],"isError":false}');
    expect(page.rows("Tools").map(([name]) => name)).toEqual(TOOLS.map((name) => `\`${name}\``));
  });
});

/** Sends a request, and closes its connection once it is sent. */
function dropped(url: string, headers: Record<string, string>, body: string): Promise<void> {
  return new Promise((resolve) => {
    const sent = request(url, { method: "POST", headers, agent: false });
    sent.once("close", () => resolve());
    sent.on("error", () => undefined);
    sent.end(body, () => sent.destroy());
  });
}

function statusWithHost(url: string, host: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers: { ...HEADERS, host }, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
