import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { python } from "@svc/test-kit/jail/run";
import { PROBE } from "@svc/test-kit/programs/probe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let jaild: Jaild;
let server: Server | undefined;
beforeEach(async () => {
  jaild = await Jaild.start({ slots: 1 });
});
afterEach(async () => {
  server?.close();
  server = undefined;
  await jaild.stop();
});

const NAMESPACE = `${PROBE}
import os, socket
network = os.readlink("/proc/self/ns/net")
`;
const LOOK = `${NAMESPACE}
def known():
    s = socket.socket(socket.AF_UNIX); s.connect("\\0left")
found = attempt(known)
sockets = len(open("/proc/net/unix").readlines()) - 1
print(json.dumps([network, found, sockets]))`;

/** A way for a program to hand something out of its jail; the other ends stay open. */
async function listen(): Promise<Socket[]> {
  const held: Socket[] = [];
  const path = join(jaild.tools, "0", "held.sock");
  const own = createServer({ allowHalfOpen: true }, (socket) => {
    held.push(socket.on("error", () => undefined));
  });
  server = own;
  await new Promise<void>((resolve) => own.listen(path, resolve));
  chmodSync(path, 0o666);
  return held;
}

describe("the network namespace of a slot", () => {
  it("serves the next run when no socket is left in it", async () => {
    const first = await python<[string, string, number]>(jaild, LOOK);
    const second = await python<[string, string, number]>(jaild, LOOK);
    expect(first.slice(1)).toEqual(["ECONNREFUSED", 0]);
    expect(second).toEqual(first);
  });

  it("serves no other run while somebody outside holds the end of a connection from it", async () => {
    const held = await listen();
    const program = `${NAMESPACE}
s = socket.socket(socket.AF_UNIX); s.connect("/run/svc/held.sock")
print(json.dumps(network))`;
    const first = await python<string>(jaild, program);
    expect(held).toHaveLength(1);
    const second = await python<[string, string, number]>(jaild, LOOK);
    expect(second[0]).not.toBe(first);
    expect(second.slice(1)).toEqual(["ECONNREFUSED", 0]);
    for (const socket of held) socket.destroy();
  });

  it("shows no run a name that another one has left in a message to itself", async () => {
    const program = `${NAMESPACE}
import array
listener = socket.socket(socket.AF_UNIX); listener.bind("\\0left"); listener.listen()
for _ in range(3):
    a, b = socket.socketpair(socket.AF_UNIX)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno(), a.fileno(), b.fileno()]))])
print(json.dumps(network))`;
    await python<string>(jaild, program);
    for (let i = 0; i < 3; i++) {
      const [, found, sockets] = await python<[string, string, number]>(jaild, LOOK);
      expect([found, sockets]).toEqual(["ECONNREFUSED", 0]);
    }
  });

  it("serves no other run when its keeper was killed", async () => {
    const [first] = await python<[string, string, number]>(jaild, LOOK);
    await jaild.full();
    for (const keeper of jaild.keepers) process.kill(keeper, "SIGKILL");
    const [second] = await python<[string, string, number]>(jaild, LOOK);
    expect(second).not.toBe(first);
  });
});
