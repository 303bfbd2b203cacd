/** MCP with API keys and access tokens of a copy that demands them, directly and through reverse proxies, over HTTP and `./svc mcp --url`. */
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Progress } from "@modelcontextprotocol/sdk/types.js";
import { ROOT } from "@svc/cli/instance";
import { newApiKey } from "@svc/test-kit/credentials/api-keys";
import { Api } from "@svc/test-kit/system/api";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  APPEAR_MS,
  bash,
  call,
  connectAlone,
  endWaiters,
  GONE_MS,
  MCP_SETTINGS,
  tokenOf,
  WAITING,
  WAITING_FOR_TEST,
} from "./support/mcp.ts";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";
import { useProxies } from "./support/use-proxies.ts";

const { starts } = useProxies(new Api(sharedSystem().url));

let folder: PrivateFolder;
let env: Record<string, string>;
let system: System;
/** Of one user, made with ./svc key add. */
let key: string;
/** The tenant of the tokens, so that another user of it is told from this one. */
const TENANT = "t1";
const token = () => tokenOf("alice");

beforeAll(async () => {
  folder = await privateFolder();
  env = {
    ...(folder.environment as Record<string, string>),
    ...MCP_SETTINGS,
    SVC_API_KEYS_FILE: join(folder.instance.dataDir, "keys.jsonl"),
    TRUST_PROXY: "1",
  };
  key = await addKey("laptop", "--user", "bob", "--tenant", TENANT);
  system = await startSystem({ env });
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
  folder?.remove();
});

async function addKey(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await svc(["key", "add", ...args], env);
  expect([code, stderr]).toEqual([0, expect.stringContaining("It is not shown again")]);
  return stdout.trim();
}

const overHttp = (origin: string, headers: Record<string, string>) =>
  new StreamableHTTPClientTransport(new URL("/mcp", origin), { requestInit: { headers } });
const asCommand = (origin: string, credential: string) =>
  new StdioClientTransport({
    command: join(ROOT, "svc"),
    args: ["mcp", "--url", origin],
    env: { PATH: process.env.PATH ?? "", SVC_TOKEN: credential },
  });

/** How a host is told the credential, for each kind of it. */
const HOSTS = {
  "HTTP with an API key": (origin: string) => overHttp(origin, { authorization: `Bearer ${key}` }),
  "HTTP with X-API-Key": (origin: string) => overHttp(origin, { "x-api-key": key }),
  "HTTP with a token": (origin: string) => overHttp(origin, { authorization: `Bearer ${token()}` }),
  "./svc mcp with an API key": (origin: string) => asCommand(origin, key),
  "./svc mcp with a token": (origin: string) => asCommand(origin, token()),
} as const;

const ROUTES = { "no proxy": undefined, ...starts } as const;

describe.each(Object.entries(ROUTES))("through %s", (_route, start) => {
  let origin: string;
  let stop = async () => {};
  beforeAll(async () => {
    const proxy = await start?.(system.instance.ports.api);
    origin = new URL(proxy?.url ?? system.url).origin;
    if (proxy !== undefined) stop = proxy.stop;
  });
  afterAll(() => stop());

  async function using<T>(
    transport: Parameters<typeof connectAlone>[0],
    work: (client: Client) => Promise<T>,
  ) {
    const client = await connectAlone(transport);
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }

  describe.each(Object.entries(HOSTS))("%s", (_host, transportTo) => {
    test("a program runs, its output comes as it is written, and its files are its caller's", async () => {
      await using(transportTo(origin), async (client) => {
        const seen: Progress[] = [];
        const code = `cat in.txt; ${WAITING_FOR_TEST}; echo last`;
        const { structured: file } = await call(client, "upload_file", {
          name: "in.txt",
          content: "first\n",
        });
        const marker = newMarker();
        const running = call(client, "run_code", bash(code, { files: [file], args: [marker] }), {
          onprogress: (progress) => seen.push(progress),
        });
        await until(() => seen.length > 0, APPEAR_MS);
        expect(seen[0]?.message).toBe("first\n");
        await endWaiters(marker);
        expect((await running).text).toMatch(/^first\nlast\b/);
        expect(await call(client, "read_file", file)).toMatchObject({ text: "first\n", isError: false });
      });
    });

    test("a host that leaves ends its program", async () => {
      const marker = newMarker();
      await using(transportTo(origin), async (client) => {
        call(client, "run_code", bash(WAITING, { args: [marker] })).catch(() => undefined);
        await until(() => processesWith(marker).length > 0, APPEAR_MS);
      });
      await until(() => processesWith(marker).length === 0, GONE_MS);
    });
  });

  test("the file of one caller is not there for the other", async () => {
    const file = await using(HOSTS["HTTP with an API key"](origin), async (client) => {
      const { structured } = await call(client, "upload_file", { name: "mine.txt", content: "of bob" });
      return structured;
    });
    await using(HOSTS["HTTP with a token"](origin), async (client) => {
      expect(await call(client, "read_file", file)).toMatchObject({ isError: true });
    });
    await using(HOSTS["./svc mcp with an API key"](origin), async (client) => {
      expect(await call(client, "read_file", file)).toMatchObject({ text: "of bob" });
    });
  });

  test("a wrong key is refused, with a sentence that names the credential", async () => {
    for (const headers of [{}, { authorization: `Bearer ${newApiKey()}` }, { "x-api-key": newApiKey() }]) {
      await expect(connectAlone(overHttp(origin, headers))).rejects.toThrow(/valid access token/);
    }
    await using(asCommand(origin, newApiKey()), async (client) => {
      expect(await call(client, "run_code", bash("echo never"))).toMatchObject({
        isError: true,
        text: expect.stringContaining("valid access token"),
      });
    });
  });
});

test("a key that is revoked ends the use of a client that was connected", async () => {
  const short = await addKey("short", "--user", "carol");
  const client = await connectAlone(overHttp(system.url, { authorization: `Bearer ${short}` }));
  try {
    expect(await call(client, "run_code", bash("echo one"))).toMatchObject({ text: "one" });
    const listed = JSON.parse((await svc(["key", "list", "--json"], env)).stdout);
    const { id } = listed.keys.find(({ name }: { name: string }) => name === "short");
    expect(await svc(["key", "revoke", id], env)).toMatchObject({ code: 0 });
    await expect.poll(() => client.ping().then(() => "accepted", String)).toMatch(/valid access token/);
  } finally {
    await client.close();
  }
});
