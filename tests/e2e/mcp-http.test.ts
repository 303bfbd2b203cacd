/** POST /mcp as any client may send it, and what docs/mcp.md says of hosts, against a system that asks for credentials. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ROOT } from "@svc/cli/instance";
import { readPage } from "@svc/test-kit/programs/page";
import { descriptorsOf, total } from "@svc/test-kit/system/descriptors";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import type { System } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  APPEAR_MS,
  bash,
  call,
  connectAlone,
  MCP_SETTINGS as env,
  GONE_MS,
  startMcpSystem,
  TOOLS,
  tokenOf,
  WAITING,
} from "./support/mcp.ts";

const NO_ID = "a".repeat(21);
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

let system: System;
let origin: string;
beforeAll(async () => {
  system = await startMcpSystem();
  ({ origin } = new URL(system.url));
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

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

  test("leaves the interface's document as it was, also where nobody has asked for it before", async () => {
    expect((await post(message("tools/list"), as("reader"))).status).toBe(200);
    const answer = await fetch(`${system.url}/openapi.json`, { headers: as("reader") });
    expect(await answer.text()).toBe(readFileSync(join(ROOT, "docs/openapi.json"), "utf8"));
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
      "null",
      "",
    ];
    for (const body of broken) {
      const answer = await post(body, as("reader"));
      expect([body, answer.status]).toEqual([body, 400]);
    }
    // Without a body, and without a word of what it would be.
    const empty = await fetch(`${origin}/mcp`, { method: "POST", headers: as("reader") });
    expect([empty.status, await empty.json()]).toEqual([
      400,
      expect.objectContaining({ error: "invalid_json" }),
    ]);
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`;
    expect((await post(deep, as("reader"))).status).toBe(400);
    const giant = message("tools/call", { name: "run_code", arguments: bash("x".repeat(9 * 2 ** 20)) });
    expect((await post(giant, as("reader"))).status).toBe(413);
    expect((await post(message("ping"), { ...as("reader"), accept: "application/json" })).status).toBe(406);
    expect((await post(message("ping"), { ...as("reader"), "mcp-protocol-version": "1" })).status).toBe(400);
    expect((await post(message("ping"), as("reader"))).status).toBe(200);
  });

  test.each<[string, string, object | undefined, number, string]>([
    ["no parameters", "tools/call", undefined, -32602, "params: is required."],
    [
      "arguments that are none",
      "tools/call",
      { name: "run_code", arguments: "x" },
      -32602,
      "params.arguments: must be an object.",
    ],
    ["an unknown tool", "tools/call", { name: "rm" }, -32602, "There is no such tool."],
    ["no address", "resources/read", {}, -32602, "params.uri: is required."],
    [
      "an address of nothing",
      "resources/read",
      { uri: "file:///x" },
      -32002,
      expect.stringMatching(/^There is no such resource/),
    ],
    [
      "a file that is not there",
      "resources/read",
      { uri: `svc://files/${NO_ID}/${NO_ID}` },
      -32002,
      "The file does not exist.",
    ],
    [
      "a session that is not there",
      "resources/read",
      { uri: `svc://sessions/${NO_ID}/a` },
      -32002,
      expect.stringContaining("no such"),
    ],
    ["an unknown method", "prompts/list", {}, -32601, "Method not found"],
  ])(
    "%s: an error with the protocol's code and a plain sentence",
    async (_what, method, params, code, text) => {
      const answer = await post({ jsonrpc: "2.0", id: 1, method, params }, as("reader"));
      const [, data = ""] = /^data: (.*)$/m.exec(await answer.text()) ?? [];
      expect(JSON.parse(data)).toMatchObject({ id: 1, error: { code, message: text } });
    },
  );

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
