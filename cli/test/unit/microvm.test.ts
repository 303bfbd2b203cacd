import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { capacityOf, shortageOf } from "../../src/capacity.ts";
import { isVirtual, trialFinding } from "../../src/doctor/microvm.ts";
import { resolveInstance } from "../../src/instance.ts";
import { accessOf, chooseAccelerator } from "../../src/microvm/accelerator.ts";
import { guestFolder, guestProblems } from "../../src/microvm/image.ts";
import { problemOf } from "../../src/microvm/trial.ts";
import { describeMode, modeOf } from "../../src/mode.ts";
import { refusedSettings } from "../../src/settings/check.ts";
import { serviceProcesses } from "../../src/topology.ts";

const GIB = 2 ** 30;
const ON = { KVM_ENABLED: "true" };
const folder = mkdtempSync(join(tmpdir(), "svc-microvm-"));
const instance = resolveInstance({ "data-dir": folder }, {});
afterAll(() => rmSync(folder, { recursive: true }));

describe("a copy with microVMs", () => {
  it("has the launcher in the runner's place, in both topologies", () => {
    expect(serviceProcesses({ ...ON, SVC_TOPOLOGY: "combined" })).toEqual(["launcher", "combined"]);
    expect(serviceProcesses({ ...ON, SVC_TOPOLOGY: "separate" })).toContain("launcher");
    expect(serviceProcesses({ ...ON, SVC_TOPOLOGY: "separate" })).not.toContain("runner");
    expect(serviceProcesses({})).not.toContain("launcher");
  });

  it("says so beside its mode", () => {
    expect(describeMode(modeOf(ON), { jwt: 0, apiKeys: 0 })).toBe(
      "no authentication, this machine only; in microVMs",
    );
  });

  it("starts guests from its own image, or from the folder that the operator names", () => {
    expect(guestFolder(instance, {})).toBe(join(instance.image, "guest"));
    expect(guestFolder(instance, { LAUNCHER_ROOTFS: "/elsewhere" })).toBe("/elsewhere");
  });

  it("has as many slots as microVMs fit into the memory", () => {
    const machine = { cores: 8, memoryBytes: 24 * GIB };
    const found = capacityOf(machine, ON, []);
    // Beside the saved one.
    expect(found).toMatchObject({ wanted: 16, jobs: 8, slotBytes: 2304 * 2 ** 20 });
    expect(shortageOf(found)).toEqual({
      message:
        "16 programs at once may take 36.0 GiB (2.3 GiB each with its microVM), and microVMs get 19.6 GiB of 24.0 GiB",
      advice: "SANDBOX_MAX_CONCURRENT_JOBS=8, or lower LAUNCHER_RAM_MIB (docs/microvm.md).",
    });
    expect(capacityOf({ ...machine, memoryBytes: 2 * GIB }, ON, []).jobs).toBe(0);
    expect(capacityOf(machine, { ...ON, LAUNCHER_MEMORY_MIB: "5000" }, []).jobs).toBe(2);
  });
});

describe("settings of microVMs that cannot be used", () => {
  it("name what a folder lacks, and what makes it", async () => {
    writeFileSync(join(folder, "vmlinuz"), "");
    expect(guestProblems({ LAUNCHER_ROOTFS: folder })).toEqual([
      `LAUNCHER_ROOTFS=${folder} lacks initrd, system.erofs, sealed-memory, SHA256SUMS: unset it, and ./svc up builds what microVMs start from, or make it with services/launcher/guest/build`,
    ]);
    expect(await refusedSettings(instance, { ...ON, LAUNCHER_ROOTFS: folder })).toEqual(
      guestProblems({ LAUNCHER_ROOTFS: folder }),
    );
    expect(await refusedSettings(instance, { LAUNCHER_ROOTFS: folder })).toEqual([]);
  });

  it("name a microVM that is too small for a program", async () => {
    expect(await refusedSettings(instance, { ...ON, LAUNCHER_RAM_MIB: "512" })).toEqual([
      `SANDBOX_RUN_MEMORY_LIMIT is ${512 * 2 ** 20} bytes, and a microVM with LAUNCHER_RAM_MIB=512 has ${384 * 2 ** 20} for programs`,
    ]);
    expect(await refusedSettings(instance, ON)).toEqual([]);
  });
});

describe("the device of KVM", () => {
  const device = "/dev/kvm";

  it.each([
    ["every user may", 0o20666, {}],
    ["its group may, which is told", 0o20660, { gid: 7 }],
  ])("opens where %s", (_, mode, access) => {
    expect(accessOf({ mode, gid: 7 }, device)).toEqual(access);
  });

  it("does not open for guests where its owner alone may, or where there is none", () => {
    expect(accessOf({ mode: 0o20600, gid: 0 }, device)).toMatchObject({
      problem: "/dev/kvm can be opened by its owner alone, and guests have users of their own",
    });
    expect(accessOf(undefined, device)).toMatchObject({ problem: "there is no /dev/kvm" });
  });
});

describe("the trial of a kernel", () => {
  const booted = "[    1.2] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)";

  it.each([
    [
      "a kernel that misses its root is one that boots",
      { how: 0, isLate: false, stdout: booted, stderr: "" },
      undefined,
    ],
    [
      "one that is silent hangs",
      { how: "SIGKILL", isLate: true, stdout: "", stderr: "" },
      "a kernel hangs in it",
    ],
    [
      "QEMU's reason is told, without what a terminal would obey",
      { how: "SIGABRT", isLate: false, stdout: "", stderr: "qemu: \x1b[31mfailed to set MSR 0x10a\nmore" },
      "QEMU ended with SIGABRT: qemu: [31mfailed to set MSR 0x10a",
    ],
    [
      "an end without a word of the kernel is no success",
      { how: 0, isLate: false, stdout: "", stderr: "" },
      "QEMU ended with 0",
    ],
    [
      "a kernel that panics elsewhere says why",
      {
        how: 0,
        isLate: false,
        stdout: "[ 1.0] up\r\n[ 2.0] Kernel panic - not syncing: no timer\r\n[ 2.1] Call Trace:\r\n",
        stderr: "",
      },
      "QEMU ended with 0: [ 2.0] Kernel panic - not syncing: no timer",
    ],
    [
      "one that restarts leaves its last line",
      { how: 0, isLate: false, stdout: "[ 1.0] up\r\n[ 2.0] further\r\n", stderr: "" },
      "QEMU ended with 0: [ 2.0] further",
    ],
  ])("%s", (_, end, problem) => {
    expect(problemOf(end)).toBe(problem);
  });
});

describe("the accelerator", () => {
  it("is emulation where the operator says so, without a trial", async () => {
    const never = () => Promise.reject(new Error("nothing is booted"));
    expect(await chooseAccelerator("tcg", "/no/kernel", never)).toEqual({ accelerator: "tcg" });
  });

  it("is emulation with a warning where no kernel boots with KVM, and an error where KVM is demanded", async () => {
    expect(await chooseAccelerator("auto", "/no/kernel")).toMatchObject({
      accelerator: "tcg",
      warning: expect.stringMatching(/^KVM is not usable: .+\. MicroVMs are emulated$/),
    });
    await expect(chooseAccelerator("kvm", "/no/kernel")).rejects.toThrow(
      /^LAUNCHER_ACCEL=kvm, and KVM is not usable: /,
    );
  });
});

describe("./svc doctor of microVMs", () => {
  const opens = { closed: undefined, isNested: true };
  const works = { ms: 1234 };
  const hangs = { ms: 15_000, problem: "a kernel hangs in it" };

  it("tells what a boot takes where KVM works", () => {
    expect(
      trialFinding({ wanted: "auto", kvm: opens, byKvm: works, byTcg: undefined, access: {} }),
    ).toMatchObject({
      grade: "ok",
      note: "/dev/kvm can be opened, inside of a virtual machine and works: a kernel boots in 1.2 s",
    });
  });

  it("warns of emulation and its cost, and fails where KVM is demanded", () => {
    const tried = { kvm: opens, byKvm: hangs, byTcg: { ms: 3210 }, access: {} };
    expect(trialFinding({ wanted: "auto", ...tried })).toMatchObject({
      grade: "warn",
      note: "KVM is not usable in this virtual machine: a kernel hangs in it; emulation boots a kernel in 3.2 s",
      fix: expect.stringContaining("nested virtualisation"),
    });
    expect(trialFinding({ wanted: "kvm", ...tried })).toMatchObject({ grade: "fail" });
  });

  it("fails where nothing boots a kernel", () => {
    expect(
      trialFinding({ wanted: "auto", kvm: opens, byKvm: hangs, byTcg: hangs, access: {} }),
    ).toMatchObject({ grade: "fail" });
    expect(
      trialFinding({ wanted: "tcg", kvm: opens, byKvm: undefined, byTcg: hangs, access: {} }),
    ).toMatchObject({ grade: "fail" });
  });

  it("knows a virtual machine by its processor", () => {
    expect(isVirtual("flags\t\t: fpu vme hypervisor lahf_lm\n")).toBe(true);
    expect(isVirtual("flags\t\t: fpu vme lahf_lm\n")).toBe(false);
  });
});
