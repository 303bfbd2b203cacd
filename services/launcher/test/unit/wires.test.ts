/** The small protocols beside the channels: a guest and QEMU are strangers on the other side. */

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Control, encodeUpdate } from "../../src/channel/control.ts";
import { Guest } from "../../src/guests/guest.ts";
import type { Machine, MachineSpec } from "../../src/monitor/monitor.ts";
import { Qmp } from "../../src/monitor/qmp.ts";

async function pair(): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as { port: number }).port, "127.0.0.1");
  const [far] = (await once(server, "connection")) as [Socket];
  server.close();
  for (const end of [near, far]) end.on("error", () => undefined);
  return [near, far];
}

test("a guest is told the time and a seed, and confirms them", async () => {
  const seed = Buffer.alloc(64, 7);
  const message = encodeUpdate(1_700_000_000_123_456_789n, seed);
  expect(message).toHaveLength(80);
  expect([message.readBigUInt64LE(0), message.readBigUInt64LE(8)]).toEqual([1_700_000_000n, 123_456_789n]);
  const [near, far] = await pair();
  const control = new Control(near, () => undefined);
  const seeds: string[] = [];
  far.on("data", (bytes: Buffer) => {
    seeds.push(bytes.subarray(16).toString("hex"));
    // In pieces.
    far.write(bytes.subarray(0, 5), () => setImmediate(() => far.write(bytes.subarray(5, 16))));
  });
  expect(await control.update(60_000, 1_700_000_000_123)).toBe(1_700_000_000_123);
  expect(await control.update(60_000, 1_600_000_000_000)).toBe(1_600_000_000_000);
  expect(new Set(seeds).size).toBe(2);
});

test.each([
  ["says more than was asked", 17, true],
  ["speaks by itself", 1, false],
])("a guest that %s fails", async (_what, length, isAsked) => {
  const [near, far] = await pair();
  const failed = Promise.withResolvers<Error>();
  const control = new Control(near, failed.resolve);
  const asked = isAsked ? [control.update(60_000)] : [];
  far.write(Buffer.alloc(length));
  for (const update of asked) await expect(update).rejects.toThrow("a message that nobody asked for");
  expect((await failed.promise).message).toBe("a message that nobody asked for");
});

test.each([
  ["5.5 s behind", -5500, false],
  ["5.5 s ahead", 5500, false],
  ["4 s behind", -4000, true],
  ["at the end of all numbers", undefined, false],
])("a guest whose clock is %s then is ended, or may go on", async (_what, offMs, isInStep) => {
  const [near, far] = await pair();
  const errors: Error[] = [];
  const control = new Control(near, (error) => errors.push(error));
  far.on("data", () => {
    const time = Buffer.alloc(16, 0xff);
    if (offMs !== undefined)
      encodeUpdate(BigInt(Date.now() + offMs) * 1_000_000n, Buffer.alloc(64)).copy(time);
    far.write(time);
  });
  const kept = control.keepInStep(60_000);
  if (isInStep) await kept;
  else await expect(kept).rejects.toThrow("the guest's clock is off by");
  expect(errors).toHaveLength(isInStep ? 0 : 1);
});

test("a guest that does not confirm fails", async () => {
  const [near] = await pair();
  const errors: Error[] = [];
  await expect(new Control(near, (error) => errors.push(error)).update(5)).rejects.toThrow(
    "does not take the time",
  );
  expect(errors).toHaveLength(1);
});

test("a guest that resumes late has no more time in all to get ready", async () => {
  const [resumeMs, bootMs] = [400, 600];
  const [requests, gateway, control] = (await Promise.all([pair(), pair(), pair()])).map(([near]) => near);
  const ended = Promise.withResolvers<string>();
  const machine = {
    connect: () => ({ requests, gateway, control }),
    running: sleep(resumeMs),
    end: async () => ended.resolve("ended"),
    ended: ended.promise,
  } as unknown as Machine;
  const guest = new Guest({
    monitor: { boot: () => machine },
    machine: {} as MachineSpec,
    env: {},
    connectGateway: () => connect(1, "127.0.0.1"),
    bootMs,
  });
  const began = performance.now();
  await expect(guest.ready()).rejects.toThrow("does not take the time");
  expect(performance.now() - began).toBeLessThan(bootMs + resumeMs - 50);
  expect(await guest.ended).toBe("ended");
});

test("a guest that ends before it confirms, or has ended, is not waited for", async () => {
  const [near, far] = await pair();
  const control = new Control(near, () => undefined);
  const updated = control.update(600_000);
  far.destroy();
  await expect(updated).rejects.toThrow("the guest has ended");
  await expect(control.update(600_000)).rejects.toThrow("the guest has ended");
});

test("QEMU's answers are told from greetings and events, in any pieces", async () => {
  const [near, far] = await pair();
  const qmp = new Qmp(near);
  far.once("data", () => {
    far.write('{"QMP": {}}\r\n{"event": "STOP"}\r\nno json\r\n{"ret');
    setImmediate(() => far.write('urn": {"status": "paused"}}\r\n'));
  });
  expect(await qmp.command("query-status")).toEqual({ status: "paused" });
  far.once("data", () => far.write('{"error": {"class": "GenericError", "desc": "no"}}\r\n'));
  await expect(qmp.command("cont")).rejects.toThrow("QEMU: GenericError: no");
});

test("QEMU that ends, or never ends its line, is an error", async () => {
  const [near, far] = await pair();
  const gone = new Qmp(near).command("cont");
  far.destroy();
  await expect(gone).rejects.toThrow();
  const [other, endless] = await pair();
  const waiting = new Qmp(other).command("cont");
  endless.write(Buffer.alloc(1024 * 1024, "x"));
  await expect(waiting).rejects.toThrow("too long");
});
