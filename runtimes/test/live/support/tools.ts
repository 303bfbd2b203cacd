/**
 * Runs a program that has tools with the image's own interpreters, and answers its calls as told: the other end of the tool socket.
 *
 * The program runs as the sandbox user in a mount namespace of its own, with the image as its root. What its calls look like on the socket
 * is checked here, for both languages in one place. Needs root and a built image.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type ToolDefinition, toolFiles } from "@svc/contracts";
import { type Runtime, rootfs, runtimeOf } from "./program.ts";

export type Answer = { result: unknown } | { error: string } | { raw: string };

export type Handler = (input: Record<string, unknown>, name: string) => Answer | Promise<Answer>;

export interface Call {
  name: string;
  input: Record<string, unknown>;
}

export interface ToolProgram {
  code: string;
  tools: Record<string, Handler>;
  /** More of a tool's definition, by its name. */
  definitions?: Record<string, Omit<ToolDefinition, "name">>;
  files?: Record<string, string>;
  args?: string[];
  stdin?: string;
  env?: Record<string, string>;
  /** Runs this instead of the entry file. */
  command?: string[];
  maxBytes?: number;
}

export interface ToolOutcome {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  signal: string | null;
  /** In the order in which they were issued; without those that were refused. */
  calls: Call[];
}

const ENTER = `
root=$1 svc=$2 workspace=$3; shift 3
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mkdir "$root/run/svc"
mount --bind "$svc" "$root/run/svc"
mount --bind "$workspace" "$root/mnt/data"
exec chroot --userspec=1000:1000 "$root" /usr/bin/env --ignore-environment --chdir=/mnt/data "$@"`;

export async function runWithTools(
  language: "python" | "bash",
  {
    code,
    tools,
    definitions = {},
    files = {},
    args = [],
    stdin,
    env = {},
    command,
    maxBytes = 1 << 20,
  }: ToolProgram,
): Promise<ToolOutcome> {
  const runtime = runtimeOf(language) as Runtime & { programmatic: Pick<Runtime, "command" | "env"> };
  const scratch = mkdtempSync(join(tmpdir(), "svc-tools-"));
  const svc = join(scratch, "svc");
  const workspace = join(scratch, "data");
  for (const directory of [scratch, svc, workspace]) {
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o777);
  }
  const list = Object.keys(tools).map((name) => ({ name, ...definitions[name] }));
  for (const [name, content] of Object.entries(toolFiles(language, list, maxBytes)))
    writeFileSync(join(svc, name), content);
  for (const [name, content] of Object.entries({ [runtime.entry]: code, ...files }))
    writeFileSync(join(workspace, name), content);
  const calls: Call[] = [];
  const server = await listen(join(svc, "3190.sock"), list, tools, maxBytes, calls);
  try {
    const variables = { SANDBOX_TOOL_SOCKET: "/run/svc/3190.sock", ...runtime.programmatic.env, ...env };
    const environment = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    const argv =
      command ?? runtime.programmatic.command.map((part) => part.replace("{entry}", runtime.entry));
    const child = spawn(
      "unshare",
      [
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-ec",
        ENTER,
        "enter",
        rootfs,
        svc,
        workspace,
        ...environment,
        ...argv,
        ...args,
      ],
      { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } },
    );
    child.stdin.on("error", () => {}).end(stdin ?? "");
    const ended = new Promise<[number | null, string | null]>((resolve) =>
      child.on("close", (...end) => resolve(end)),
    );
    const [stdout, stderr, [exitCode, signal]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      ended,
    ]);
    return { stdout, stderr, exitCode, signal, calls: calls.filter(() => true) };
  } finally {
    server.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function listen(
  path: string,
  list: readonly ToolDefinition[],
  tools: Record<string, Handler>,
  maxBytes: number,
  calls: Call[],
): Promise<Server> {
  const server = createServer((socket) => {
    const number = `call_${String(++accepted).padStart(3, "0")}`;
    const call: Call = { name: "", input: {} };
    answer(socket, list, tools, maxBytes, (made) => {
      calls[Number(number.slice(5)) - 1] = Object.assign(call, made);
      return number;
    }).catch(() => socket.destroy());
  });
  let accepted = 0;
  await new Promise<void>((resolve) => server.listen(path, resolve));
  chmodSync(path, 0o666);
  return server;
}

async function answer(
  socket: Socket,
  list: readonly ToolDefinition[],
  tools: Record<string, Handler>,
  maxBytes: number,
  record: (call: Call) => string,
): Promise<void> {
  socket.on("error", () => {});
  const { head, body } = await readRequest(socket);
  const send = (status: number, content: string, id = "") =>
    socket.end(
      `HTTP/1.1 ${status} x\r\nX-Tool-Call-Id: ${id}\r\nContent-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`,
    );
  if (!head.startsWith("POST /tool-call HTTP/1.1\r\n")) return void send(404, "no such route");
  if (body.length > maxBytes) return void send(413, `the call has more than ${maxBytes} bytes`);
  const index = /^x-tool-index: (\d+)$/im.exec(head)?.[1];
  const call = index === undefined ? JSON.parse(body.toString()) : shellCall(list[Number(index)]?.name, body);
  if (call === undefined) return void send(400, "the argument is no JSON object");
  const { tool_name: name, input } = call;
  const id = record({ name, input });
  const outcome = await tools[name]?.(input, name);
  if (outcome === undefined) send(403, "no such tool");
  else if ("raw" in outcome) socket.end(outcome.raw);
  else if ("error" in outcome) send(422, outcome.error, id);
  else send(200, JSON.stringify(outcome.result), id);
}

function shellCall(name: string | undefined, body: Buffer) {
  try {
    const input = JSON.parse(body.toString());
    return typeof input === "object" && input !== null && !Array.isArray(input)
      ? { tool_name: name, input }
      : undefined;
  } catch {
    return undefined;
  }
}

async function readRequest(socket: Socket): Promise<{ head: string; body: Buffer }> {
  const parts: Buffer[] = [];
  return new Promise((resolve, reject) => {
    socket.on("data", (data) => {
      parts.push(data);
      const all = Buffer.concat(parts);
      const end = all.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = all.subarray(0, end + 2).toString("latin1");
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
      if (all.length >= end + 4 + length) resolve({ head, body: all.subarray(end + 4) });
    });
    socket.on("close", () =>
      reject(new Error("the program closed the connection before its request was whole")),
    );
  });
}

export const echo: Handler = (input) => ({ result: input });
export const value: Handler = (input) => ({ result: input.value ?? null });
/** Answers with `n`, and only once `count` calls are outstanding: the last one first. */
export const together = (count: number): Handler => {
  const waiting: (() => void)[] = [];
  return (input) =>
    new Promise((resolve) => {
      waiting.push(() => resolve({ result: input.n }));
      if (waiting.length === count) for (const go of waiting.splice(0).reverse()) go();
    });
};
/** What no complete answer looks like; the last one promises more than it holds. */
export const brokenAnswers = [
  "",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
  "\r\n\r\n",
  "HTTP/1.\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
];
export const fails: Handler = () => ({ error: "out of stock: é" });
