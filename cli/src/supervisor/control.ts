/**
 * The control channel between commands and a running supervisor: a unix socket that only its own user can open. Each
 * connection carries one request, which is a line of JSON. The answer is lines of JSON, and the last one gives the result.
 */

import { rmSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { svcLine } from "../svc-line.ts";
import { problemOf } from "../unexpected.ts";

/** What happens to a process while it restarts. */
export interface RestartEvent {
  process: string;
  phase: "stopping" | "starting" | "ready";
}

type Answer = RestartEvent | { done: true } | { problem: string; advice?: string; exitCode: number };

const MAX_REQUEST = 4096;

export function controlSocket({ runDir }: Pick<Instance, "runDir">): string {
  return join(runDir, "control.sock");
}

export type Restart = (component: string | undefined, tell: (event: RestartEvent) => void) => Promise<void>;

export function serveControl(path: string, restart: Restart): Server {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    void answer(socket, restart);
  });
  server.unref();
  rmSync(path, { force: true });
  // The umask closes the socket to others from the moment when it exists.
  const umask = process.umask(0o177);
  server.listen(path);
  process.umask(umask);
  return server;
}

async function answer(socket: Socket, restart: Restart): Promise<void> {
  const send = (line: Answer) => socket.writable && socket.write(`${JSON.stringify(line)}\n`);
  try {
    await restart(componentIn(await firstLine(socket)), send);
    send({ done: true });
  } catch (error) {
    const { message, advice, exitCode } = problemOf(error);
    send({ problem: message, exitCode, ...(advice === undefined ? {} : { advice }) });
  }
  socket.end();
}

/** The component that a request names; undefined for all. */
export function componentIn(line: string): string | undefined {
  const { command, component } = parsed(line);
  const isKnown = component === undefined || typeof component === "string";
  if (command === "restart" && isKnown) return component;
  throw new Problem("the supervisor does not understand the request", "Use ./svc of the same version.");
}

function parsed(line: string): { command?: unknown; component?: unknown } {
  try {
    return Object(JSON.parse(line)) as { command?: unknown; component?: unknown };
  } catch {
    return {};
  }
}

function firstLine(socket: Socket): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
      else if (text.length > MAX_REQUEST) reject(new Problem("the request is too long"));
    });
    // The peer is gone, so nobody receives the answer.
    socket.once("close", () => resolve(""));
  });
}

/** Resolves when the supervisor has finished the restart. Throws the Problem that the supervisor reports. */
export async function requestRestart(path: string, ...[component, tell]: Parameters<Restart>): Promise<void> {
  const socket = createConnection({ path });
  const failed = new Promise<never>((_, reject) => {
    socket.once("error", (error: NodeJS.ErrnoException) =>
      reject(new Problem(`the supervisor does not answer (${error.code})`, `See: ${svcLine("status")}`)),
    );
  });
  failed.catch(() => undefined);
  socket.write(`${JSON.stringify({ command: "restart", component })}\n`);
  const lines = createInterface({ input: socket });
  // An error of the socket also ends the loop over the lines.
  const read = async () => {
    for await (const line of lines) {
      const answer = JSON.parse(line) as Answer;
      if ("done" in answer) return;
      if ("problem" in answer) throw new Problem(answer.problem, answer.advice, answer.exitCode);
      tell(answer);
    }
    throw new Problem("the supervisor ended before the restart was done", `See: ${svcLine("status")}`);
  };
  try {
    await Promise.race([read(), failed]);
  } finally {
    socket.destroy();
  }
}
