import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Backoff } from "../../src/supervisor/backoff.ts";
import { takeLock } from "../../src/supervisor/lock.ts";
import { readFrom, readLine, tailOf } from "../../src/supervisor/logs.ts";
import { readState, readStoredState, type State, writeState } from "../../src/supervisor/state.ts";
import { identify } from "../../src/system/process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-supervisor-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("Backoff", () => {
  it("doubles from 0.2 s up to 5 s", () => {
    const backoff = new Backoff();
    expect([1, 2, 3, 4, 5, 6, 7].map(() => backoff.delay(10))).toEqual([
      200, 400, 800, 1600, 3200, 5000, 5000,
    ]);
  });

  it("starts over after 30 healthy seconds", () => {
    const backoff = new Backoff();
    backoff.delay(10);
    backoff.delay(10);
    expect(backoff.delay(29_999)).toBe(800);
    expect(backoff.delay(30_000)).toBe(200);
  });
});

describe("logs", () => {
  it("shows JSON lines for a person and other lines as they are", () => {
    const line =
      '{"level":40,"time":"2026-01-31T10:00:00.000Z","name":"api","instance":"x","msg":"slow","ms":7}';
    expect(readLine(line)).toEqual({ level: 40, message: "slow", text: '10:00:00.000 warn slow {"ms":7}' });
    expect(readLine("1:M * Ready")).toMatchObject({ level: 0, text: "1:M * Ready" });
    expect(readLine('"text"')).toMatchObject({ level: 0, text: '"text"' });
    expect(readLine("null")).toMatchObject({ level: 0, text: "null" });
  });

  it("gives the last lines, and none of a missing file", () => {
    const path = join(folder, "api.log");
    writeFileSync(path, "a\nb\nc\n");
    expect(tailOf(path, 2)).toEqual(["b", "c"]);
    expect(tailOf(join(folder, "none"), 2)).toEqual([]);
    expect(readFrom(path, 4)).toBe("c\n");
  });
});

describe("state", () => {
  const self = identify(process.pid);
  if (self === undefined) throw new Error("/proc is needed");
  const state: State = {
    version: 1,
    supervisor: self,
    phase: "running",
    background: true,
    startedAt: new Date(0).toISOString(),
    url: "http://127.0.0.1:1",
    dataDir: "/srv",
    ports: { api: 1, worker: 2, runner: 3, "file-server": 4, "tool-call-server": 5, "egress-gateway": 6 },
    cgroup: "svc-00000000",
    unprivileged: true,
    procEntries: ["cpuinfo"],
    components: [],
  };

  it("is read back while the supervisor lives", () => {
    writeState(folder, state);
    expect(readState(folder)).toEqual(state);
    expect(existsSync(join(folder, "state.json.new"))).toBe(false);
    expect(statSync(join(folder, "state.json")).mode & 0o777).toBe(0o644);
  });

  it("does not take another process with the same pid for the supervisor", () => {
    writeState(folder, { ...state, supervisor: { pid: self.pid, startTicks: self.startTicks - 1 } });
    expect(readState(folder)).toBeUndefined();
    expect(readStoredState(folder)).toBeDefined();
  });

  it("is absent when the file is missing, broken or of another version", () => {
    expect(readStoredState(folder)).toBeUndefined();
    writeFileSync(join(folder, "state.json"), '{"version":');
    expect(readStoredState(folder)).toBeUndefined();
    writeFileSync(join(folder, "state.json"), '{"version":2}');
    expect(readStoredState(folder)).toBeUndefined();
  });
});

describe("takeLock", () => {
  it("is held by one at a time and free again after", async () => {
    const first = await takeLock(folder);
    expect(first).toBeDefined();
    expect(await takeLock(folder)).toBeUndefined();
    expect(await takeLock(`${folder}/other`).then((server) => server?.close() !== undefined)).toBe(true);
    await new Promise((resolve) => first?.close(resolve));
    const again = await takeLock(folder);
    expect(again).toBeDefined();
    again?.close();
  });
});
