/**
 * Readers that ask for events and then take nothing: what waits for them is bounded, their programs end, and their seats become free.
 * The service gives a reader up after 60 seconds, so this takes longer.
 */
import { connect, type Socket } from "node:net";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { RUNNER } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { watchPeak } from "./support/memory.ts";
import { leftOfStreams } from "./support/streams.ts";

const MIB = 2 ** 20;
/** More than the kernel keeps for a connection that nobody reads. */
const KEPT = 8 * MIB;
const WRITTEN = 25 * KEPT;
/** Seats of a caller: each unread stream takes one. */
const READERS = 2;
/** For each component: the kept outputs some times over, and half of what was written. */
const MOST_MIB = (READERS * WRITTEN) / MIB / 2;
const APPEAR_MS = slow(60_000);
const GIVEN_UP_MS = slow(110_000);

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({
    env: {
      ...OPEN_LIMITS,
      ...ONE_BY_ONE,
      SANDBOX_OUTPUT_MAX_SIZE: String(KEPT),
      SVC_MAX_CONCURRENT_EXECUTIONS: String(READERS),
    },
  });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

/** Asks for the events of a program, and reads nothing of them. */
function unread(body: object): Socket {
  const { port, host } = new URL(system.url);
  const socket = connect(Number(port), "127.0.0.1").on("error", () => undefined);
  const text = JSON.stringify(body);
  const head = [
    "POST /v1/exec HTTP/1.1",
    `Host: ${host}`,
    "Accept: text/event-stream",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
  return socket.pause();
}

test(
  "streams that nobody reads cost bounded memory and keep neither their programs nor their seats",
  async () => {
    const names = ["api", "worker", RUNNER] as const;
    const peaks = names.map((name) => watchPeak(system.pid(name)));
    const marker = newMarker();
    const code = `import sys
for _ in range(${WRITTEN / MIB}): sys.stdout.write('x' * ${MIB})`;
    const sockets = Array.from({ length: READERS }, () => unread({ lang: "py", code, args: [marker] }));
    const quick = { lang: "py", code: "print(1)" };
    try {
      await until(() => processesWith(marker).length > 0, APPEAR_MS);
      await until(() => processesWith(marker).length === 0, APPEAR_MS);
      await until(async () => (await api.tryExec(quick)).status === 200, GIVEN_UP_MS);
      const left = leftOfStreams(system.instance);
      await expect.poll(left.names, { timeout: GIVEN_UP_MS }).toEqual([]);
      left.close();
      const used = peaks.map((peak, at) => ({ name: names[at], mib: peak() }));
      expect(used.filter(({ mib }) => mib > MOST_MIB)).toEqual([]);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    const both = await Promise.all(Array.from({ length: READERS }, () => api.tryExec(quick)));
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
  },
  slow(280_000),
);
