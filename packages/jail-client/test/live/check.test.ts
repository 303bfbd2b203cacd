/**
 * jaild's look at its machine: fit as it is, and with one thing taken away at a time, by namespaces, capabilities, limits
 * and mounts of a process of the test's own. What is missing is named, and jaild does not start.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@svc/test-kit/jail/host";
import { BINARY, IMAGE } from "@svc/test-kit/jail/jaild";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "svc-check-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Result {
  code: number;
  out: string;
  log: string;
}

function run(command: readonly string[]): Promise<Result> {
  const [file = "", ...args] = command;
  return new Promise((resolve) => {
    execFile(file, args, { timeout: 30_000 }, (error, out, log) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, log }),
    );
  });
}

/** Runs jaild as the last part of a shell script in a private mount namespace. */
const after = (script: string, ...unshare: readonly string[]) => [
  "unshare",
  "--mount",
  ...unshare,
  "sh",
  "-ec",
  `${script}\nexec "$0" "$@"`,
];

const GROUP = `svc-test-check-${process.pid}`;
const OPTIONS = ["--root", IMAGE, "--cgroup", GROUP, "--socket", join(folder, "socket")];
const check = (around: readonly string[] = []) => run([...around, BINARY, "--check", ...OPTIONS]);
const start = (around: readonly string[]) => run([...around, BINARY, ...OPTIONS]);

const lines = ({ out }: Result, grade: string) =>
  out
    .split("\n")
    .filter((line) => line.startsWith(`${grade} `))
    .map((line) => line.split(" ")[1]);

const without = (capability: string) => [
  "setpriv",
  `--bounding-set=-${capability}`,
  `--inh-caps=-${capability}`,
];
/** Mount points of control groups. */
const points = () =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(" ")[4] ?? "");
/** Control groups that a check or a start made, by name. */
const groups = () => points().flatMap((point) => readdirSync(point).filter((name) => name.startsWith(GROUP)));
const READ_ONLY_GROUPS = after(
  points()
    .map((point) => `mount -o remount,bind,ro ${point}`)
    .join("\n"),
);
const NO_GROUPS = after(
  points()
    .reverse()
    .map((point) => `umount ${point}`)
    .join("\n"),
);
const NO_SETTINGS = after("mount -o bind,ro /proc/sys /proc/sys");
const NO_EXECUTION = after(`mount --bind ${IMAGE} ${IMAGE}\nmount -o remount,bind,noexec ${IMAGE}`);

describe("a machine that is fit", () => {
  it("passes, feature by feature, and nothing of the check is left", async () => {
    const result = await check();
    expect(lines(result, "fail")).toEqual([]);
    expect(result.code).toBe(0);
    expect(lines(result, "ok")).toEqual(
      expect.arrayContaining([
        ...["mount", "pid", "net", "ipc", "uts", "cgroup", "user"].map((kind) => `${kind}-namespace`),
        ...[
          "tmpfs",
          "bind-mount",
          "overlay",
          "pivot-root",
          "proc",
          "devices",
          "seccomp",
          "pidfd",
          "openat2",
          "close-range",
        ],
        ...["cgroups", "cgroup-memory", "cgroup-pids", "cgroup-cpu", "cgroup-freezer", "cgroup-kill"],
      ]),
    );
    for (const line of result.out.trim().split("\n"))
      expect(line).toMatch(/^(ok [\w-]+( v[12])?|(warn|note) [\w-]+ .+ \(.+\))$/);
    expect(groups()).toEqual([]);
  });
});

describe("a machine where something is missing", () => {
  it.each([
    ["device nodes", without("mknod"), ["devices"]],
    ["the right to drop capabilities", without("setpcap"), ["capabilities"]],
    ["an image that may be executed", NO_EXECUTION, ["image"]],
    [
      "network namespaces",
      after("echo 0 > /proc/sys/user/max_net_namespaces", "--user", "--map-root-user"),
      ["net-namespace", "user-namespace", "devices"],
    ],
    ["other users than one", after("true", "--user", "--map-root-user"), ["user-namespace", "devices"]],
    ["a writable /proc/sys", NO_SETTINGS, ["user-namespace"]],
    ["writable control groups", READ_ONLY_GROUPS, ["cgroups"]],
    ["control groups", NO_GROUPS, ["cgroups"]],
  ] as const)("is found out without %s", async (_what, around, missing) => {
    const result = await check(around);
    expect(lines(result, "fail")).toEqual(expect.arrayContaining([...missing]));
    expect(result.code).toBe(1);
    expect(groups()).toEqual([]);
  });

  it("names only what is missing", async () => {
    expect(lines(await check(without("mknod")), "fail")).toEqual(["devices"]);
  });

  it.each([
    ["a capability", without("mknod"), /devices does not work on this machine/],
    ["user namespaces", NO_SETTINGS, /user-namespace does not work/],
    ["control groups", READ_ONLY_GROUPS, /control group/],
  ])("has no jaild without %s", async (_what, around, said) => {
    const result = await start(around);
    expect(result.code).toBe(1);
    expect(result.log).toMatch(said);
    expect(result.log).not.toContain("listening on");
    expect(existsSync(join(folder, "socket"))).toBe(false);
    await until(() => groups().length === 0, "the groups are gone");
  });
});
