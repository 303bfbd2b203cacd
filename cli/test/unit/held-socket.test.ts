/** The address of the API outlives the process that listens on it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, it } from "vitest";
import { type HeldSocket, holdSocket } from "../../src/supervisor/held-socket.ts";

/** Says its name to each connection. */
const LISTENER = `
  const server = require("node:net").createServer((socket) => socket.end(process.argv[1]));
  server.listen({ fd: 3 }, () => console.log("listening"));
`;

let held: HeldSocket | undefined;
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  held?.close();
  held = undefined;
});

async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function startListener(name: string, descriptor: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", LISTENER, name], {
    stdio: ["ignore", "pipe", "inherit", descriptor],
  });
  children.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

async function connected(host: string, port: number) {
  const socket = createConnection({ host, port });
  await once(socket, "connect");
  return { heard: text(socket) };
}

it.each([["127.0.0.1"], ["::1"]])(
  "a connection to %s that comes while nobody listens is accepted by the next process",
  async (host) => {
    const port = await freePort(host);
    held = holdSocket(host, port);
    const { descriptor } = held as HeldSocket;
    const first = await startListener("first", descriptor);
    expect(await (await connected(host, port)).heard).toBe("first");
    first.kill("SIGKILL");
    await once(first, "exit");
    const waiting = await connected(host, port);
    await startListener("second", descriptor);
    expect(await waiting.heard).toBe("second");
  },
);

it("holds no name, and refuses an address that this machine does not have", () => {
  expect(holdSocket("localhost", 1)).toBeUndefined();
  expect(() => holdSocket("192.0.2.1", 3112)).toThrow(
    "the API cannot have the address 192.0.2.1:3112 (EADDRNOTAVAIL)",
  );
});

it("refuses an address that is taken", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  expect(() => holdSocket("127.0.0.1", port)).toThrow(`127.0.0.1:${port} (EADDRINUSE)`);
  await new Promise((resolve) => server.close(resolve));
});
