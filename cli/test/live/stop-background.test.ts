/** How a copy in the background is ended: in its own time where its supervisor ends it, and without it where that one hangs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { stopBackground } from "@svc/cli/supervisor/background";
import { readStoredState, type State, writeState } from "@svc/cli/supervisor/state";
import { identify } from "@svc/cli/system/process";
import { afterEach, beforeEach, expect, test } from "vitest";

const BEGIN_MS = 300;
let folder: string;
let instance: Instance;
let supervisor: ChildProcess;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-stop-")));
  instance = resolveInstance({ "data-dir": folder }, {});
  mkdirSync(instance.runDir, { recursive: true });
});
afterEach(() => {
  supervisor.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

/** A process that does this at SIGTERM, as the supervisor of a copy that says how long its end may take. */
async function startSupervisor(onTerm: string, stopSeconds: number): Promise<void> {
  const code = `process.on("SIGTERM", () => { ${onTerm} }); setInterval(() => {}, 1000); console.log("up");`;
  supervisor = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  await once(supervisor.stdout as NodeJS.ReadableStream, "data");
  const identity = identify(supervisor.pid as number);
  const state = {
    version: 1,
    supervisor: identity,
    phase: "running",
    cgroup: instance.cgroup,
    stopSeconds,
    components: [],
  };
  writeState(instance.runDir, state as unknown as State);
}

/** What the supervisor writes when it begins to end everything. */
const stopping = () => {
  const path = JSON.stringify(join(instance.runDir, "state.json"));
  return `const fs = require("fs"); const state = JSON.parse(fs.readFileSync(${path}));
    fs.writeFileSync(${path}, JSON.stringify({ ...state, phase: "stopping" }));`;
};

async function ended(): Promise<[number | null, NodeJS.Signals | null]> {
  const exit = once(supervisor, "exit");
  expect(await stopBackground(instance, BEGIN_MS)).toBe(true);
  expect(readStoredState(instance.runDir)).toBeUndefined();
  return (await exit) as [number | null, NodeJS.Signals | null];
}

test("a supervisor that ends everything has the time that the settings give to what was accepted", async () => {
  await startSupervisor(`${stopping()} setTimeout(() => process.exit(7), ${4 * BEGIN_MS});`, 60);
  expect(await ended()).toEqual([7, null]);
});

test("a copy that starts as another ends is left as it is", async () => {
  const own = { version: 1, supervisor: identify(process.pid), phase: "starting" };
  const path = JSON.stringify(join(instance.runDir, "state.json"));
  const next = JSON.stringify(JSON.stringify(own));
  await startSupervisor(`require("fs").writeFileSync(${path}, ${next}); process.exit(0);`, 60);
  expect(await stopBackground(instance, BEGIN_MS)).toBe(true);
  expect(readStoredState(instance.runDir)).toEqual(own);
});

test("one that takes longer is killed", async () => {
  await startSupervisor(stopping(), 1);
  expect(await ended()).toEqual([null, "SIGKILL"]);
});

test("one that does not begin is killed", async () => {
  await startSupervisor("", 60);
  expect(await ended()).toEqual([null, "SIGKILL"]);
});
