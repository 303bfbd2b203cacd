/** The whole system in microVMs that KVM runs, as an operator starts it. */
import { chmodSync, chownSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { guestProcesses, IMAGE, statusOf, UID_BASE } from "@svc/test-kit/system/guests";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { drive } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { svc } from "../e2e/support/svc.ts";

const DEVICE = "/dev/kvm";
/** As Debian has it: root, and who is in a group. */
const GROUP = 4321;
const MICROVMS = {
  KVM_ENABLED: "true",
  LAUNCHER_ACCEL: "kvm",
  LAUNCHER_ROOTFS: IMAGE,
  LAUNCHER_RAM_MIB: "1024",
  LAUNCHER_VCPUS: "1",
  LAUNCHER_POOL_SIZE: "1",
  SANDBOX_JOB_UID_BASE: `${UID_BASE}`,
  SANDBOX_JOB_GID_BASE: `${UID_BASE}`,
  SANDBOX_MAX_CONCURRENT_JOBS: "1",
  SANDBOX_QUEUE_WAIT_MS: "60000",
  // What runs in a guest is an emulated processor's guest: interpreters that start ahead would take many minutes.
  SANDBOX_WARM_START: "off",
  SVC_READY_TIMEOUT: `${slow(200)}`,
  PTC_SETTLE_MAX_MS: `${slow(20_000)}`,
};
const before = statSync(DEVICE);
let system: System;
let api: Api;
beforeAll(async () => {
  chownSync(DEVICE, 0, GROUP);
  chmodSync(DEVICE, 0o660);
  system = await startSystem({ env: { ...OPEN_PROGRAM_LIMITS, ...MICROVMS } });
  api = new Api(system.url);
}, slow(250_000));
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
  expect(guestProcesses()).toEqual([]);
  chownSync(DEVICE, before.uid, before.gid);
  chmodSync(DEVICE, before.mode & 0o777);
});

test("./svc doctor tells that KVM works, and ./svc status that programs run in microVMs", async () => {
  const doctor = await svc(["doctor"], { ...system.environment, ...MICROVMS });
  expect(doctor.stdout).toMatch(
    /microVMs .*\/dev\/kvm can be opened.* and works: a kernel boots in [\d.]+ s/,
  );
  const status = await svc(["status"], { ...system.environment, ...MICROVMS });
  expect([status.code, status.stdout]).toEqual([0, expect.stringContaining("in microVMs")]);
});

test("the launcher chose KVM, and a guest's process is in the group of its device, without rights", () => {
  const log = readFileSync(join(system.instance.logsDir, "launcher.log"), "utf8");
  expect(log).toContain("microVMs run by KVM: a kernel was booted with it");
  const machines = guestProcesses().filter(({ name }) => name.startsWith("qemu"));
  expect(machines.length).toBeGreaterThan(0);
  for (const { pid } of machines) {
    const status = statusOf(pid);
    expect(status("Gid").split("\t")[0]).toBe(`${GROUP}`);
    expect(status("CapEff")).toBe("0000000000000000");
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).toContain("\0-accel\0kvm\0");
  }
});

test("a program runs on the processor of this machine, and its file is stored", async () => {
  const code = [
    "grep -m1 -o hypervisor /proc/cpuinfo",
    "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
    "echo made > out.txt",
  ].join("\n");
  const answer = await api.exec({ lang: "bash", code });
  expect(answer).toMatchObject({ code: 0, stdout: expect.stringContaining("hypervisor\n") });
  expect(answer.files.map(({ name }: { name: string }) => name)).toEqual(["out.txt"]);
});

test("guests go on from the saved one, with the time and random numbers of their own", async () => {
  const python = { lang: "py", code: "import time, random\nprint(time.time(), random.random())" };
  const answers = [await api.exec(python), await api.exec(python)];
  const [first, second] = answers.map(({ stdout }) => stdout.trim().split(" ").map(Number));
  expect(Math.abs((second?.[0] ?? 0) - Date.now() / 1000)).toBeLessThan(slow(20));
  expect(first?.[1]).not.toBe(second?.[1]);
  expect((await api.exec({ lang: "js", code: "console.log(6 * 7)" })).stdout).toBe("42\n");
});

test("a program with tools is paused in its guest, and goes on with its results", async () => {
  const { answer, batches } = await drive(
    api,
    { code: "first = await add(a=1, b=2)\nprint(first, await add(a=first, b=4))" },
    { add: ({ a, b }) => a + b },
  );
  expect(answer).toMatchObject({ status: "completed", stdout: "3 7\n", stderr: "" });
  expect(batches).toEqual([["add"], ["add"]]);
});
