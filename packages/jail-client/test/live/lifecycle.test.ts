import { readFileSync } from "node:fs";
import {
  childrenOf,
  descendants,
  descriptors,
  isAlive,
  killProcess,
  namespaces,
  until,
} from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, runOpen, stage } from "@svc/test-kit/jail/run";
import { slow, times } from "@svc/test-kit/jail/slowness";
import { TEST_DISK } from "@svc/test-kit/system/small-disk";
import { afterEach, describe, expect, it } from "vitest";
import { JailError, JailRun } from "../../src/index.ts";

let jaild: Jaild;
afterEach(() => jaild.stop());

/** Longer than a busy machine keeps a client from going on. */
const STALL_MS = slow(1500);
const LONGER_MS = 2 * STALL_MS;
const STALL = ["--stage-timeout-ms", `${STALL_MS}`, "--fetch-timeout-ms", `${STALL_MS}`];
/** Nothing has run, so the job may be sent again. */
const LATE = { kind: "setup", started: false, message: "the job did not come in time (errno 0)" };
async function* late(bytes: Buffer) {
  yield bytes.subarray(0, -1);
  await new Promise((resolve) => setTimeout(resolve, LONGER_MS));
  yield bytes.subarray(-1);
}
/** All of this machine, but for the small disks of tests that run beside. */
const mounts = () =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => !line.includes(` ${TEST_DISK} `))
    .join("\n");
const sleeping = { argv: ["/bin/bash", "-c", "sleep 100 & setsid sleep 100 & sleep 100"] };

describe("a client that goes away", () => {
  it("ends its run at once, with everything that the program started", async () => {
    jaild = await Jaild.start({ slots: 1 });
    await jaild.full();
    const run = await stage(jaild, sleeping);
    await run.start();
    const [keeper] = jaild.keepers;
    await until(() => descendants(keeper).length >= 4, "the program has children");
    const pids = descendants(keeper);
    run.close();
    await until(() => pids.every((pid) => !isAlive(pid)), "all processes are dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it.each(["before any frame", "while staging", "after the listing"])("frees the slot: %s", async (when) => {
    jaild = await Jaild.start({ slots: 1 });
    for (let i = 0; i < 3; i++) {
      if (when === "after the listing") {
        (await runOpen(jaild, { argv: ["/bin/true"] })).run.close();
      } else if (when === "while staging") {
        const run = await stage(jaild, { argv: ["/bin/true"] });
        void run
          .file({ index: 9, path: "f", size: 1000, readOnly: false }, Buffer.alloc(10))
          .catch(() => undefined);
        run.close();
      } else {
        (await JailRun.open(jaild.socket, new AbortController().signal)).close();
      }
    }
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("is told from an abort: the reason of the signal comes back", async () => {
    jaild = await Jaild.start();
    const controller = new AbortController();
    const run = await stage(jaild, { ...sleeping, signal: controller.signal });
    await run.start();
    const outcome = run.outcome();
    setTimeout(() => controller.abort(new Error("caller left")), 50);
    await expect(outcome).rejects.toThrow("caller left");
  });

  it("loses its slot when it stalls", async () => {
    jaild = await Jaild.start({ slots: 1, args: STALL });
    const stalled = await stage(jaild, { argv: ["/bin/true"] });
    await new Promise((resolve) => setTimeout(resolve, LONGER_MS));
    await expect(stalled.start()).rejects.toMatchObject(LATE);
    const begun = await stage(jaild, { argv: ["/bin/true"] });
    // More than the client keeps back until the start.
    const body = Buffer.alloc(300_000);
    const file = { index: 0, path: "f", size: body.length, readOnly: false };
    const sending = begun.file(file, late(body));
    await expect(sending.then(() => begun.start())).rejects.toMatchObject(LATE);
    const finished = await runOpen(jaild, { argv: ["/bin/bash", "-c", "echo x > f"] });
    await new Promise((resolve) => setTimeout(resolve, LONGER_MS));
    await expect(finished.run.fetch(0)).rejects.toBeInstanceOf(JailError);
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("may take long over a run: no timeout of staging or fetching ends the program", async () => {
    jaild = await Jaild.start({ slots: 1, args: STALL });
    expect((await bash(jaild, `sleep ${LONGER_MS / 1000}; echo done`)).out).toBe("done\n");
  });
});

describe("many runs", () => {
  it("leave no process, mount, control group, namespace or descriptor behind", async () => {
    jaild = await Jaild.start({ slots: 8 });
    await jaild.full();
    const nets = () => namespaces("net", descendants(jaild.pid)).size;
    const before = { mounts: mounts(), descriptors: descriptors(jaild.pid), nets: nets() };
    const scripts = [
      "true",
      "sleep 100 & echo x > f",
      "kill -9 $$",
      "exit 3",
      ":(){ :|:& };: ; sleep 0.1",
      "mkfifo f; mkdir d",
    ];
    let done = 0;
    const worker = async () => {
      while (done < times(200))
        await bash(jaild, scripts[done++ % scripts.length] ?? "", {
          limits: { processes: 30, wallMs: slow(2000) },
        });
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    await jaild.full();
    expect(mounts()).toBe(before.mounts);
    expect(descriptors(jaild.pid)).toBe(before.descriptors);
    expect(nets()).toBe(before.nets);
    expect(descendants(jaild.pid).length).toBe(8 * 2); // keeper, init
    const pids = descendants(jaild.pid);
    await jaild.kill("SIGTERM");
    expect(jaild.exitCode).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(jaild.groups).toEqual([]);
    expect(jaild.socketExists).toBe(false);
    expect(mounts()).toBe(before.mounts);
  });

  it("waits in line when all slots are busy", async () => {
    jaild = await Jaild.start({ slots: 2 });
    const outs = await Promise.all(
      Array.from({ length: 12 }, (_, i) => bash(jaild, `sleep 0.05; echo ${i}`)),
    );
    expect(outs.map(({ out }) => out)).toEqual(Array.from({ length: 12 }, (_, i) => `${i}\n`));
  });
});

describe("a process of jaild that is killed", () => {
  it("keeper: the run ends for the client, the slot comes back", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const run = await stage(jaild, sleeping);
    await run.start();
    const [keeper] = jaild.keepers;
    const pids = descendants(keeper);
    killProcess(keeper);
    await expect(run.outcome()).rejects.toMatchObject({ kind: "gone", started: true });
    await until(() => pids.every((pid) => !isAlive(pid)), "the jail is dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("pid 1 of the jail: an internal error, the slot comes back", async () => {
    jaild = await Jaild.start({ slots: 1 });
    const run = await stage(jaild, sleeping);
    await run.start();
    const [init] = childrenOf(jaild.keepers[0]);
    killProcess(init);
    await expect(run.outcome()).rejects.toMatchObject({ kind: "internal", started: true });
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("pid 1 of a jail that waits: replaced before any client meets it", async () => {
    jaild = await Jaild.start({ slots: 1 });
    await jaild.full();
    const [init = 0] = descendants(jaild.keepers[0]);
    killProcess(init);
    await until(() => !isAlive(init), "the jail is dead");
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("the master: everything dies with it, and the next start cleans up", async () => {
    jaild = await Jaild.start({ slots: 4 });
    const run = await stage(jaild, sleeping);
    await run.start();
    await jaild.full();
    const pids = descendants(jaild.pid);
    expect(pids.length).toBeGreaterThan(8);
    await jaild.kill("SIGKILL");
    await until(() => pids.every((pid) => !isAlive(pid)), "all are dead");
    await expect(run.outcome()).rejects.toMatchObject({ kind: "gone" });
    expect(jaild.groups.length).toBeGreaterThan(0);
    await jaild.restart();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
    await jaild.kill("SIGTERM");
    expect(jaild.groups).toEqual([]);
  });

  it("any of them, at odd moments, under load: the service goes on and nothing is left", async () => {
    jaild = await Jaild.start({ slots: 4 });
    await jaild.full();
    let stop = false;
    const load = Array.from({ length: 4 }, async () => {
      while (!stop) await bash(jaild, "sleep 0.01").catch(() => undefined);
    });
    for (let i = 0; i < times(60); i++) {
      const all = descendants(jaild.pid);
      const victim = all[(i * 7) % Math.max(all.length, 1)];
      try {
        if (victim !== undefined) killProcess(victim);
      } catch {
        // it ended by itself
      }
      await new Promise((resolve) => setTimeout(resolve, i % 11));
    }
    stop = true;
    await Promise.all(load);
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
    await jaild.full();
    const pids = descendants(jaild.pid);
    await jaild.kill("SIGTERM");
    expect(pids.filter(isAlive)).toEqual([]);
    expect(jaild.groups).toEqual([]);
  });
});

describe("starting", () => {
  it("refuses a control group name and a socket that are in use", async () => {
    jaild = await Jaild.start({ slots: 1 });
    await expect(Jaild.start({ slots: 1, args: ["--socket", jaild.socket] })).rejects.toThrow(
      /another process listens/,
    );
    await expect(Jaild.start({ slots: 1, args: ["--cgroup", jaild.group] })).rejects.toThrow(
      /another jaild uses/,
    );
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("ends cleanly when it is told to at once", async () => {
    jaild = await Jaild.start({ slots: 8 });
    await jaild.kill("SIGTERM");
    expect(jaild.exitCode).toBe(0);
    expect(jaild.groups).toEqual([]);
  });
});
