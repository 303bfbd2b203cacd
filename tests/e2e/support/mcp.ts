/** A system that asks for credentials and keeps sessions, and clients of its MCP server by the official SDK. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/sdk/types.js";
import { ROOT } from "@svc/cli/instance";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { readOrEmpty } from "@svc/test-kit/system/read-file";
import { type System, startSystem } from "@svc/test-kit/system/system";

/** What a program that was cancelled left must be gone in this time, on a machine that does other work. */
export const GONE_MS = slow(10_000);
/** Long enough for a program to appear on a busy machine. */
export const APPEAR_MS = slow(30_000);
export const TOOLS = ["run_code", "upload_file", "list_files", "read_file", "list_languages"];
/** A program that waits, with its first argument in the command line of a process. */
export const WAITING = `python3 -c 'import time; time.sleep(60)' "$1"`;
/** The same until `endWaiters`. Nobody can end a process of a microVM from outside: there it goes on by itself. */
export const WAITING_FOR_TEST = `{ python3 -c 'import time; time.sleep(${IN_GUESTS ? 5 : 60})' "$1"; } 2>/dev/null`;

const signer = newSigner();
export const MCP_SETTINGS = {
  ...OPEN_LIMITS,
  SVC_PERSIST_SESSIONS: "true",
  LOCAL_MODE: "false",
  SVC_JWT_PUBLIC_KEY: signer.pem,
  SVC_JWT_KID: KID,
};
export const startMcpSystem = (): Promise<System> => startSystem({ env: MCP_SETTINGS });
export const tokenOf = (sub: string): string => signer.mint({ claims: { sub } });

export type Transport = "http" | "stdio";
export const TRANSPORTS: Transport[] = ["http", "stdio"];

export function transportOf(system: System, kind: Transport, token: string) {
  if (kind === "http") {
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    return new StreamableHTTPClientTransport(new URL("/mcp", system.url), { requestInit });
  }
  return new StdioClientTransport({
    command: join(ROOT, "svc"),
    args: ["mcp", "--url", system.url],
    env: { PATH: process.env.PATH ?? "", SVC_TOKEN: token },
  });
}

/** A client of its own. Its owner closes it. */
export async function connectAlone(
  transport: StreamableHTTPClientTransport | StdioClientTransport,
): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  // The types of the SDK itself do not agree with exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  return client;
}

export interface Called {
  text: string;
  isError: boolean;
  content: ContentBlock[];
  structured: Record<string, unknown>;
}

export async function call(
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

export const bash = (code: string, more: Record<string, unknown> = {}) => ({
  language: "bash",
  code,
  ...more,
});

/** Waits until a program waits for a Python process with the marker among its words, and ends that: the program goes on. */
export async function endWaiters(marker: string): Promise<void> {
  if (IN_GUESTS) return;
  await until(() => waitersOf(marker).length > 0, APPEAR_MS);
  for (const pid of waitersOf(marker)) killProcess(pid);
}

function waitersOf(marker: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    const words = /^\d+$/.test(name) ? readOrEmpty(`/proc/${name}/cmdline`).split("\0") : [];
    return words[0] === "python3" && words.includes(marker) ? [Number(name)] : [];
  });
}
