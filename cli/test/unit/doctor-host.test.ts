import { describe, expect, it } from "vitest";
import { fail, ok, untried, verdict, warn } from "../../src/doctor/finding.ts";
import {
  appArmor,
  type ClockReading,
  clock,
  disk,
  inodes,
  memory,
  namespaceCounts,
  openFiles,
  processNumbers,
  procMount,
} from "../../src/doctor/host.ts";
import { jailFinding } from "../../src/doctor/jail.ts";

describe("the verdict", () => {
  const fine = ok("system", "Debian");
  it.each([
    [[fine, warn("memory", "little", "more")], "Fit to run."],
    [[fine, fail("disk", "0.0 GiB free", "more")], "1 problem."],
    [[fail("disk", "a", "b"), fail("ports", "a", "b")], "2 problems."],
    [
      [untried("jail", "a", "b", "after ./svc up")],
      "Probably fit to run: the jail can be tried after ./svc up.",
    ],
    [[untried("jail", "a", "b", "later"), fail("disk", "a", "b")], "1 problem."],
  ])("of %j is %j", (findings, text) => expect(verdict(findings)).toBe(text));
});

describe("room", () => {
  const GIB = 2 ** 30;
  it.each([
    [0, true, "fail"],
    [0.2 * GIB, true, "fail"],
    [0.3 * GIB, true, "warn"],
    [0.9 * GIB, false, "fail"],
    [2 * GIB, false, "warn"],
    [3 * GIB, false, "ok"],
  ])("of %i bytes on the disk, image built: %s, is %s", (bytes, isBuilt, grade) =>
    expect(disk(bytes, isBuilt).grade).toBe(grade),
  );

  it.each([
    [{ total: 0, free: 0 }, true, "ok"],
    [{ total: 10, free: 0 }, true, "fail"],
    [{ total: 1e6, free: 20_000 }, true, "warn"],
    [{ total: 1e6, free: 20_000 }, false, "fail"],
    [{ total: 1e6, free: 100_000 }, false, "ok"],
  ])("of inodes %j, image built: %s, is %s", (counts, isBuilt, grade) =>
    expect(inodes(counts, isBuilt).grade).toBe(grade),
  );

  it.each([
    [0, "fail"],
    [GIB, "warn"],
    [2 * GIB, "ok"],
  ])("of %i bytes of memory is %s", (bytes, grade) => expect(memory(bytes).grade).toBe(grade));
});

describe("namespaces", () => {
  const maxima = (own: Record<string, string>) => (file: string) =>
    own[/max_(\w+)_namespaces/.exec(file)?.[1] ?? ""] ?? "1000\n";

  it("has room, or names each kind that is too scarce, with the command that helps", () => {
    expect(namespaceCounts(maxima({}), 42)).toMatchObject({ grade: "ok" });
    expect(namespaceCounts(maxima({ user: "50\n" }), 42)).toMatchObject({ grade: "ok" });
    expect(namespaceCounts(maxima({ user: "0\n", net: "49\n" }), 42)).toMatchObject({
      grade: "fail",
      note: "too few for 42 jails: user, net",
      fix: "sysctl -w user.max_user_namespaces=100 user.max_net_namespaces=100",
    });
  });

  it("fails where the kernel does not tell", () => {
    expect(namespaceCounts(() => undefined, 1).grade).toBe("fail");
  });
});

describe("AppArmor", () => {
  it.each([
    [undefined, undefined, "ok", /no restriction/],
    ["0\n", "unconfined\n", "ok", /no restriction/],
    ["1\n", "unconfined\n", "ok", /unprivileged/],
    ["1\n", "docker-default (enforce)\n", "warn", /docker-default/],
  ])("restriction %j, profile %j: %s", (restriction, profile, grade, note) => {
    expect(appArmor(restriction, profile)).toMatchObject({ grade, note: expect.stringMatching(note) });
  });
});

describe("open files", () => {
  const limits = (hard: string) =>
    `Limit                     Soft Limit           Hard Limit           Units\nMax processes             1  2  processes\nMax open files            1024                 ${hard}              files     \n`;
  it.each([
    ["1023", "fail"],
    ["1024", "warn"],
    ["2047", "warn"],
    ["2048", "ok"],
    ["unlimited", "ok"],
  ])("a hard limit of %s: %s", (hard, grade) => {
    expect(openFiles(limits(hard), { needed: 1024, processFiles: 2048 })).toMatchObject({ grade });
  });

  it("fails where the limit cannot be read", () => {
    expect(openFiles("", { needed: 1024, processFiles: 2048 }).grade).toBe("fail");
  });
});

describe("processes", () => {
  it.each([
    ["32768\n", "100000\n", "ok"],
    ["2560\n", "100000\n", "warn"],
    ["100000\n", "2000\n", "warn"],
    [undefined, "100000\n", "warn"],
  ])("pid_max %j, threads-max %j: %s", (pidMax, threadsMax, grade) => {
    expect(processNumbers(pidMax, threadsMax, 2560).grade).toBe(grade);
  });
});

describe("/proc", () => {
  const line = (point: string, options: string, type = "proc") =>
    `22 28 0:20 / ${point} rw,nosuid shared:12 - ${type} proc ${options}`;
  it.each([
    [line("/proc", "rw"), "ok", /users of this machine see/],
    [line("/proc", "rw,hidepid=0"), "ok", /users of this machine see/],
    [line("/proc", "rw,gid=5,hidepid=invisible"), "ok", /hidepid=invisible/],
    [line("/proc", "rw,hidepid=2"), "ok", /hidepid=2/],
    [line("/proc", "rw,subset=pid"), "fail", /subset=pid/],
    [`${line("/proc", "rw,subset=pid")}\n${line("/proc", "rw")}`, "ok", /see/],
    [line("/srv/proc", "rw"), "fail", /no proc/],
    [line("/proc", "rw", "tmpfs"), "fail", /no proc/],
    ["", "fail", /no proc/],
  ])("%j: %s", (mounts, grade, note) => {
    expect(procMount(mounts)).toMatchObject({ grade, note: expect.stringMatching(note) });
  });
});

describe("the clock", () => {
  const NOW = Date.UTC(2026, 5, 1);
  const reading = (change: Partial<ClockReading>): ClockReading => ({
    beforeMs: NOW,
    afterMs: NOW + 20,
    tookMs: 20,
    fileMs: NOW + 5,
    ...change,
  });
  it.each([
    ["agrees", {}, "ok"],
    ["stamps files a tick earlier", { fileMs: NOW - 10 }, "ok"],
    ["stands in the past", { beforeMs: 0, afterMs: 20, fileMs: 5 }, "fail"],
    ["jumps forwards", { afterMs: NOW + 5000 }, "warn"],
    ["jumps backwards", { afterMs: NOW - 5000 }, "warn"],
    ["differs from the files' clock by seconds", { fileMs: NOW - 5000 }, "warn"],
    ["is behind the files' clock by a minute", { fileMs: NOW + 60_000 }, "fail"],
  ])("%s", (_what, change, grade) => {
    expect(clock(reading(change)).grade).toBe(grade);
  });
});

describe("a line of jaild --check", () => {
  it.each([
    ["ok seccomp", { grade: "ok", note: "seccomp" }],
    ["ok cgroups v2", { grade: "ok", note: "cgroups v2" }],
    ["note kvm only microVMs need it", { grade: "ok", note: "kvm: only microVMs need it" }],
    ["warn swap swapoff -a", { grade: "warn", fix: "swapoff -a" }],
    ["fail pidfd Linux 5.4", { grade: "fail", note: "pidfd does not work", fix: "Linux 5.4" }],
    [
      "fail cgroups mount them",
      { grade: "fail", note: "cgroups does not work: none mounted", fix: "mount them" },
    ],
    ["something else", { grade: "fail" }],
  ])("%s", (line, expected) => {
    expect(jailFinding(line, "none mounted")).toMatchObject({ subject: "jail", ...expected });
  });
});
