/** The frame of these tests: each thing that must hold around a hostile program is missed when it does not. */
import { chownSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCgroups } from "@svc/cli/system/cgroups";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { expect, test } from "vitest";
import { evidence, hostile, POOLED, untilIdle } from "../support/hostile.ts";
import { attacker, running } from "../support/running.ts";

const SOON_MS = 1000;
const APPEAR_MS = 20_000;
const { instance } = running;

type Undo = () => unknown;
/** Leaves something behind; what it answers takes it away again. */
const LEFT: Record<string, [leave: () => Undo | Promise<Undo>, complaint: RegExp]> = {
  "a program that still runs": [leaveProgram, /slots are taken/],
  "a file in the folder of sockets": [() => leaveFile(join(instance.runDir, "left")), /files.*left/],
  "a temporary file of a program's user": [
    () => leaveFile(join(tmpdir(), newMarker()), instance.jobUidBase),
    /files.*marker/,
  ],
  "a control group": [leaveGroup, /cgroups/],
  "more descriptors": [leaveConnections, /descriptors.*runner/],
};

test.each(Object.entries(LEFT))("%s is missed", async (_what, [leave, complaint]) => {
  await untilIdle();
  const undo = await leave();
  try {
    await expect(untilIdle({ withinMs: SOON_MS, closedMs: SOON_MS })).rejects.toThrow(complaint);
  } finally {
    await undo();
  }
  await untilIdle();
});

async function leaveProgram(): Promise<Undo> {
  const marker = newMarker();
  const client = new AbortController();
  const call = attacker
    .exec({ lang: "bash", code: "sleep 60", args: [marker] }, { signal: client.signal })
    .catch(() => undefined);
  await until(() => processesWith(marker).length > 0, APPEAR_MS);
  return () => {
    client.abort();
    return call;
  };
}

function leaveFile(path: string, uid = 0): Undo {
  writeFileSync(path, "left");
  chownSync(path, uid, uid);
  return () => rmSync(path);
}

function leaveGroup(): Undo {
  const [own] = findCgroups(instance.cgroup);
  if (own === undefined) throw new Error("the system has no control group");
  const group = join(own, "left");
  mkdirSync(group);
  return () => rmdirSync(group);
}

async function leaveConnections(): Promise<Undo> {
  const connect = () =>
    new Promise<Socket>((resolve, reject) => {
      const socket = createConnection(instance.ports.runner, "127.0.0.1", () => resolve(socket));
      socket.once("error", reject);
    });
  const sockets = await Promise.all(Array.from({ length: 2 * POOLED }, connect));
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

test("evidence of a program that failed, or that shows none, counts as none", async () => {
  await expect(evidence("raise ValueError('not tried')")).rejects.toThrow(/not tried/);
  await expect(evidence("pass")).rejects.toThrow();
  await expect(hostile({ lang: "none", code: "" })).rejects.toThrow(/answer 400/);
});
