/**
 * Everything that a program can read is named here: the files of the root image and no other of the machine, its mounts,
 * devices, and the entries of /proc that say anything.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { running } from "../support/running.ts";

const PROC = [
  "cpuinfo",
  "filesystems",
  "loadavg",
  "meminfo",
  "mounts",
  "net",
  "self",
  "stat",
  "sys",
  "thread-self",
  "uptime",
  "version",
  "vmstat",
];

test("the root is the image: the same names, types, sizes and targets, and nothing else", async () => {
  const list = `find . -xdev -mindepth 1 \\( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./mnt/data -o -path ./run \\) -prune -o -printf '%p %y %m %s %l\\n' | grep -v ' d ' | LC_ALL=C sort`;
  const own = execFileSync("bash", ["-c", list], {
    cwd: running.image,
    maxBuffer: 1 << 28,
  });
  const { stdout } = await hostile({ lang: "bash", code: `cd /; ${list} | sha256sum` });
  expect(own.length).toBeGreaterThan(100_000);
  expect(stdout).toBe(`${createHash("sha256").update(own).digest("hex")}  -\n`);
});

test("what is mounted, and how: only the three own places can be written, nothing is setuid, devices are in /dev", async () => {
  const mounts = await evidence<[point: string, options: string, type: string][]>(`
show([[fields[4], fields[5], fields[fields.index("-") + 1]] for fields in map(str.split, open("/proc/self/mountinfo"))])`);
  const points = (wanted: (options: string[]) => boolean) => [
    ...new Set(mounts.filter(([, options]) => wanted(options.split(","))).map(([point]) => point)),
  ];
  // What covers entries of /proc lies there too.
  const places = points(() => true).filter((point) => !point.startsWith("/proc/"));
  expect(places.sort()).toEqual(["/", "/dev", "/dev/shm", "/mnt/data", "/proc", "/run", "/run/svc", "/tmp"]);
  expect(points((options) => options.includes("rw")).sort()).toEqual(["/dev/shm", "/mnt/data", "/tmp"]);
  expect(points((options) => !options.includes("nosuid"))).toEqual([]);
  expect(points((options) => !options.includes("nodev"))).toEqual(["/dev"]);
  const types = new Map(mounts.map(([point, , type]) => [point, type]));
  for (const point of ["/tmp", "/mnt/data", "/dev/shm"]) expect(types.get(point)).toBe("tmpfs");
});

test("/dev holds five devices and the usual links", async () => {
  expect(
    await evidence(`
import stat
show([sorted(os.listdir("/dev")), sorted(f"{n} {os.major(s.st_rdev)}:{os.minor(s.st_rdev)}" for n in os.listdir("/dev")
  if stat.S_ISCHR((s := os.lstat("/dev/" + n)).st_mode) or stat.S_ISBLK(s.st_mode))])`),
  ).toEqual([
    ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"],
    ["full 1:7", "null 1:3", "random 1:8", "urandom 1:9", "zero 1:5"],
  ]);
});

test("the top of /proc says nothing but by the names that are listed, and shows only processes", async () => {
  const names = readdirSync("/proc").filter((name) => !/^\d+$/.test(name));
  expect(names.length).toBeGreaterThan(2 * PROC.length);
  expect(
    await evidence(`
def says(path):
    try:
        if os.path.isdir(path): return len(os.listdir(path)) > 0
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try: return len(os.read(fd, 64)) > 0
        finally: os.close(fd)
    except OSError: return False
names = ${JSON.stringify([...new Set([...names, ...PROC])].sort())}
show([[n for n in names if says("/proc/" + n)], sorted(n for n in os.listdir("/proc") if not n.isdigit())])`),
  ).toEqual([PROC, ["self", "thread-self"]]);
});

test("settings in /proc/sys are the synthetic ones", async () => {
  const names = await evidence<string[]>(`
show(sorted(os.path.join(folder, name) for folder, _, names in os.walk("/proc/sys") for name in names))`);
  expect(names.length).toBeGreaterThan(10);
  const kernel =
    /core_pattern|modprobe|sysrq|kptr|dmesg|random\/|unprivileged|user\/|ns_last_pid|hotplug|binfmt/;
  expect(names.filter((name) => kernel.test(name))).toEqual([]);
});

test("no file of the machine appears under any path", async () => {
  const { dataDir } = running.instance;
  const paths = [
    "/root",
    "/home",
    "/boot",
    "/sys/kernel",
    "/etc/shadow",
    "/etc/ssh",
    "/var/lib/docker",
    "/var/log",
    dataDir,
    join(dataDir, "secrets.env"),
    process.cwd(),
  ];
  expect(
    await evidence(`
paths = ${JSON.stringify(paths)}
prefixes = ["", "/proc/self/root", "/proc/self/cwd/../..", "/proc/1/root", "/proc/1/cwd", "/proc/self/root/..", "/../..", "/proc/self/task/self/root", "/dev/fd/0/../.."]
def full(path):
    try: return len(os.listdir(path)) > 0 if os.path.isdir(path) else len(open(path, "rb").read(1)) > 0
    except OSError: return False
show([prefix + path for prefix in prefixes for path in paths if full(prefix + path)])`),
  ).toEqual([]);
});

test("accounts, hosts and names are the synthetic ones", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `id; hostname; getent passwd | cut -d: -f1,3 | tail -1; cat /etc/machine-id /etc/resolv.conf /var/lib/dbus/machine-id 2>/dev/null; grep -v '^#' /etc/hosts | awk '{print $2}' | sort -u | tr '\\n' ' '`,
  });
  expect(stdout).toMatch(
    /^uid=1000\(sandbox\) gid=1000\(sandbox\)[^\n]*\nsandbox\n[^\n]+\n(localhost |sandbox |ip6-\w+ )*$/,
  );
});
