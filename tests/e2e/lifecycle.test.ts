/** `./svc up` and `down` as a user meets them: start, second start, restart of what died, every way of ending. */

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { STARTED_SETTINGS } from "@svc/cli/settings/started";
import { identify, isAlive, signalProcess, sleep, waitGone } from "@svc/cli/system/process";
import { serviceProcesses } from "@svc/cli/topology";
import { userOf } from "@svc/cli/users";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { slow } from "@svc/test-kit/jail/slowness";
import { IN_GUESTS, MODE_END, SANDBOX } from "@svc/test-kit/system/guests";
import { holdNamespaces, leftovers, takeBaseline } from "@svc/test-kit/system/leftovers";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { privateFolder, svc } from "./support/svc.ts";

const shell = promisify(execFile);
const hello = { lang: "py", code: "print(6*7)" };

async function answerOf(system: System, body: object): Promise<{ status: number; stdout?: string }> {
  const response = await fetch(`${system.url}/exec`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { ...((await response.json()) as object), status: response.status };
}

describe("./svc up in the foreground", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ args: [], env: { MAX_REQUESTS: "1000", CANARY_OF_THE_CALLER: "x" } });
  });
  afterAll(() => system?.stop());

  it("ends its start with the example's table, its plot and curl commands that work as they stand", async () => {
    const output = system.output();
    expect(output).toMatch(/product\s+Cocoa\s+Coffee\s+Tea/);
    const plot = join(system.instance.dataDir, "example/plot.png");
    expect(output).toContain(plot);
    expect(readFileSync(plot).subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
    const commands = output.split("\n").filter((line) => line.startsWith("  curl "));
    expect(commands).toHaveLength(4);
    const folder = mkdtempSync(join(tmpdir(), "svc-curl-"));
    try {
      // The upload names its file as seen from where `up` ran: here the repository's root.
      const cwd = join(import.meta.dirname, "../..");
      const answers: string[] = [];
      for (const command of commands) {
        const placed = command.replace("-o plot.png", `-o ${folder}/plot.png`);
        answers.push((await shell("bash", ["-c", placed], { cwd })).stdout);
      }
      expect(JSON.parse(answers[0] ?? "")).toMatchObject({ stdout: "42\n", code: 0 });
      expect(JSON.parse(answers[1] ?? "")).toMatchObject({ message: "success" });
      expect(JSON.parse(answers[2] ?? "").stdout).toMatch(/Cocoa\s+Coffee\s+Tea/);
      expect(readFileSync(join(folder, "plot.png")).equals(readFileSync(plot))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is not started twice on one data folder: the second says where the first is", async () => {
    const second = await svc(["up"], system.environment);
    expect(second.code).toBe(0);
    expect(second.stdout).toContain(
      `Already running: ${system.instance.url} (no authentication, this machine only${MODE_END}), pid ${system.supervisorPid}, `,
    );
  });

  it("says at a second start which settings are not those of the first, and refuses wrong ones", async () => {
    const same = await svc(["up"], { ...system.environment, MAX_REQUESTS: "1000" });
    expect(same.code, same.stderr).toBe(0);
    expect(same.stdout).not.toContain("Settings that are not");
    const secret = newSecret();
    const others = { ...system.environment, MAX_REQUESTS: "7", SVC_METRICS_TOKEN: secret };
    const second = await svc(["up"], others);
    expect(second.code, second.stderr).toBe(0);
    expect(second.stdout).toContain(
      "\nSettings that are not those of its start: MAX_REQUESTS, SVC_METRICS_TOKEN. They count after ./svc down, then ./svc up.\n",
    );
    const wrong = await svc(["up"], { ...system.environment, MAX_REQUESTS: "many", SVC_JWT_ISSUR: "x" });
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain('MAX_REQUESTS must be a whole number, not "many"');
    expect(wrong.stderr).toContain("SVC_JWT_ISSUR is not known; did you mean SVC_JWT_ISSUER?");
    expect(await answerOf(system, hello)).toMatchObject({ status: 200, stdout: "42\n" });
  });

  it("is named to another copy that wants its ports", async () => {
    const other = await privateFolder();
    const { code, stderr } = await svc(["up"], {
      ...system.environment,
      SVC_DATA_DIR: other.instance.dataDir,
    });
    other.remove();
    expect(code).toBe(1);
    const { api, runner } = system.instance.ports;
    for (const port of [`${api} of the api`, `${runner} of the runner`])
      expect(stderr).toMatch(
        new RegExp(`port ${port} is taken by pid \\d+ of the copy in ${system.instance.dataDir} `),
      );
  });

  it("does not change its languages while it runs, and says what to do", async () => {
    const other = await svc(["up", "--languages", "rs"], system.environment);
    expect(other).toMatchObject({ code: 1, stdout: "" });
    expect(other.stderr).toContain(`languages cannot be changed while it is running: ${system.instance.url}`);
    expect(other.stderr).toContain("./svc down");
  });

  it("keeps its secrets from other users", () => {
    expect(statSync(join(system.instance.dataDir, "secrets.env")).mode & 0o777).toBe(0o600);
    expect(statSync(system.instance.redisSocket).mode & 0o007).toBe(0);
    expect(statSync(join(system.instance.redisSocket, "..")).mode & 0o777).toBe(0o710);
    const settings = join(system.instance.runDir, STARTED_SETTINGS);
    expect(statSync(settings).mode & 0o777).toBe(0o600);
    for (const folder of ["objects", "redis", "logs"]) {
      expect(statSync(join(system.instance.dataDir, folder)).mode & 0o777).toBe(0o700);
    }
  });

  it.skipIf(IN_GUESTS)("runs the runner as a user of its own, who alone may use the jail's socket", () => {
    const { uid } = userOf("runner", system.instance);
    const socket = statSync(system.instance.jailSocket);
    expect([socket.uid, socket.mode & 0o777]).toEqual([uid, 0o600]);
    const tools = statSync(join(system.instance.toolDirectory, "0"));
    expect([tools.uid, tools.mode & 0o777]).toEqual([uid, 0o711]);
  });

  it("gives no component the caller's environment", () => {
    for (const name of ["api", "worker", "redis", ...SANDBOX] as const) {
      const environment = readFileSync(`/proc/${system.pid(name)}/environ`, "latin1");
      expect(environment).not.toContain("CANARY_OF_THE_CALLER");
    }
  });

  it.each(["redis", ...(IN_GUESTS ? [] : (["jaild"] as const)), ...serviceProcesses(process.env)] as const)(
    "starts %s again when it is killed, and the next request works",
    async (name) => {
      const old = identify(system.pid(name));
      if (old === undefined) throw new Error(`${name} does not run`);
      const current = () => system.state().components.find((component) => component.name === name);
      signalProcess(old, "SIGKILL");
      const started = { restarts: 1, lastExit: "signal SIGKILL", process: { pid: expect.any(Number) } };
      await expect.poll(current).toMatchObject(started);
      expect(current()?.process?.pid).not.toBe(old.pid);
      const answer = () => answerOf(system, hello).catch(() => undefined);
      await expect
        .poll(answer, { timeout: slow(20_000), interval: 200 })
        .toMatchObject({ status: 200, stdout: "42\n" });
    },
  );

  it("ends on SIGTERM and leaves nothing", async () => {
    expect(await system.stop()).toEqual([]);
  });
});

describe("a supervisor that is killed", () => {
  it("takes its components along, and the next start is clean", async () => {
    const system = await startSystem();
    const { components, supervisor } = system.state();
    signalProcess(supervisor, "SIGKILL");
    for (const { name, process } of components) {
      expect(process !== undefined && (await waitGone(process, slow(20_000))), name).toBe(true);
    }
    await sleep(100);
    expect((await svc(["down"], system.environment)).code).toBe(0);
    const left = await system.stop();
    expect(left.filter((line) => !line.startsWith("exit code"))).toEqual([]);
  });
});

describe("./svc up -d and down", () => {
  it("start and end a background copy, are safe to repeat, and leave nothing", async () => {
    const { environment, instance, remove } = await privateFolder();
    const baseline = takeBaseline();
    try {
      const up = await svc(["up", "-d", "--no-example"], environment);
      expect(up.code, up.stderr).toBe(0);
      expect(up.stdout).toContain(
        `Ready: ${instance.url}/v1 (no authentication, this machine only${MODE_END})\n`,
      );
      const again = await svc(["up", "-d"], environment);
      expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("Already running") });
      const supervisor = JSON.parse(readFileSync(join(instance.runDir, "state.json"), "utf8")).supervisor;
      expect(isAlive(supervisor)).toBe(true);
      const namespaces = holdNamespaces(instance, baseline);
      expect(namespaces.names.size).toBeGreaterThan(0);
      const down = await svc(["down"], environment);
      expect(down).toMatchObject({ code: 0, stdout: `Stopped: ${instance.dataDir}\n` });
      expect(isAlive(supervisor)).toBe(false);
      expect(leftovers(instance, baseline, namespaces.names)).toEqual([]);
      namespaces.release();
      const twice = await svc(["down"], environment);
      expect(twice).toMatchObject({ code: 0, stdout: `Nothing is running on ${instance.dataDir}.\n` });
    } finally {
      await svc(["down"], environment);
      remove();
    }
  });

  it("name the owner of a taken port and start nothing", async () => {
    const { environment, instance, remove } = await privateFolder();
    const { createServer } = await import("node:net");
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(instance.ports.worker, "127.0.0.1", resolve));
    try {
      const up = await svc(["up", "-d", "--no-example"], environment);
      expect(up.code).toBe(1);
      expect(up.stderr).toContain(
        `port ${instance.ports.worker} of the worker is taken by pid ${process.pid}`,
      );
      expect(existsSync(join(instance.runDir, "state.json"))).toBe(false);
    } finally {
      await new Promise((resolve) => squatter.close(resolve));
      remove();
    }
  });

  it("start nothing when the memory of the slots does not fit, and tell numbers and the fix", async () => {
    const { environment, instance, remove } = await privateFolder();
    try {
      const up = await svc(["up", "-d", "--no-example"], {
        ...environment,
        SANDBOX_WORKSPACE_MAX_BYTES: "1000gb",
      });
      expect(up.code).toBe(1);
      expect(up.stderr).toMatch(
        IN_GUESTS
          ? /SANDBOX_WORKSPACE_MAX_BYTES must be at most \d+ bytes, what a microVM has/
          : /\d+ programs at once may take \d{4,}\.\d GiB \(1\d{3}\.\d GiB each with its files\).*Lower SANDBOX_RUN_MEMORY_LIMIT/s,
      );
      expect(existsSync(join(instance.runDir, "state.json"))).toBe(false);
    } finally {
      remove();
    }
  });

  it("start nothing where a component would refuse its settings", async () => {
    const { environment, instance, remove } = await privateFolder();
    const baseline = takeBaseline();
    try {
      const keys = { SVC_JWT_PUBLIC_KEY: "no key", SVC_JWT_KID: "k" };
      const up = await svc(["up", "-d", "--no-example"], { ...environment, ...keys });
      expect(up.code).toBe(1);
      expect(up.stderr).toContain("SVC_JWT_PUBLIC_KEY cannot be read as a public key");
      expect(leftovers(instance, baseline, new Set())).toEqual([]);
    } finally {
      remove();
    }
  });
});
