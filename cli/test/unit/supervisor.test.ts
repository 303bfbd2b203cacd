import { appendFileSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { modeOf } from "../../src/mode.ts";
import { Problem } from "../../src/problem.ts";
import { tailSince } from "../../src/readiness.ts";
import { Backoff } from "../../src/supervisor/backoff.ts";
import { componentIn, requestRestart, serveControl } from "../../src/supervisor/control.ts";
import { takeLock } from "../../src/supervisor/lock.ts";
import { fileSize, readFrom, readLine } from "../../src/supervisor/logs.ts";
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

  it("gives a file from a place on, and nothing of a missing one", () => {
    const path = join(folder, "api.log");
    writeFileSync(path, "a\nb\nc\n");
    expect(readFrom(join(folder, "none"), 0)).toBe("");
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
    logStarts: { api: 17 },
    mode: modeOf({}),
    slots: 4,
    build: { version: "0.1.0" },
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

describe("tailSince", () => {
  it("shows what was written after this start, and nothing of earlier ones", () => {
    const path = join(folder, "api.log");
    writeFileSync(path, "an error of the start before\n");
    const start = fileSize(path);
    expect(tailSince(path, start)).toEqual([]);
    appendFileSync(path, "an error of this start\n");
    expect(tailSince(path, start)).toEqual(["    an error of this start"]);
  });

  it("shows all of a log that was rotated meanwhile, and nothing of one that is missing", () => {
    const path = join(folder, "api.log");
    writeFileSync(path, "new\n");
    expect(tailSince(path, 1000)).toEqual(["    new"]);
    expect(tailSince(join(folder, "none.log"), 0)).toEqual([]);
  });

  it("shows the last lines of a long log, or of one level when asked", () => {
    const path = join(folder, "api.log");
    const lines = Array.from({ length: 5000 }, (_, at) =>
      JSON.stringify({ level: at % 2 ? 50 : 30, msg: `m${at}` }),
    );
    writeFileSync(path, `${lines.join("\n")}\n`);
    expect(tailSince(path, 10)).toHaveLength(8);
    expect(tailSince(path, 10, 40).at(-1)).toContain("error m4999");
    expect(tailSince(path, 10, 40)).toHaveLength(8);
  });
});

describe("the control socket", () => {
  const path = () => join(folder, "control.sock");

  it("tells each event, and how it ended; only its own user can open it", async () => {
    const server = serveControl(path(), async (component, tell) => {
      tell({ process: component ?? "all", phase: "ready" });
      if (component === "bad") throw new Problem("no", "do this");
    });
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    const events: unknown[] = [];
    await requestRestart(path(), "api", (event) => events.push(event));
    await requestRestart(path(), undefined, (event) => events.push(event));
    expect(events).toEqual([
      { process: "api", phase: "ready" },
      { process: "all", phase: "ready" },
    ]);
    const refused = requestRestart(path(), "bad", () => undefined);
    await expect(refused).rejects.toMatchObject({ message: "no", advice: "do this" });
    server.close();
  });

  it("is told of as missing, or as gone in the middle", async () => {
    await expect(requestRestart(path(), undefined, () => undefined)).rejects.toThrow(
      "the supervisor does not answer (ENOENT)",
    );
    const server = createServer((socket) => socket.destroy()).listen(path());
    await expect(requestRestart(path(), undefined, () => undefined)).rejects.toThrow(/^the supervisor /);
    server.close();
  });

  it.each(["", "{", "null", "[]", '{"command":"stop"}', '{"command":"restart","component":7}', '"restart"'])(
    "refuses the request %j",
    (line) => expect(() => componentIn(line)).toThrow("does not understand"),
  );
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
