/**
 * /proc as a tool: the program's own executable and mappings opened again, kernel settings, maps of users, scores,
 * aliases of covered files, other processes.
 */
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";

const SELVES = `
selves = ["/proc/self", "/proc/thread-self", f"/proc/{os.getpid()}", f"/proc/{os.getpid()}/task/{os.getpid()}", "/proc/self/root/proc/self", "/proc/self/cwd/../../proc/self"]
`;

test("the own executable and libraries cannot be opened for writing, by no way through /proc", async () => {
  const results = await evidence<string[]>(`${SELVES}
results = set()
paths = [os.path.realpath("/proc/self/exe")] + [s + "/exe" for s in selves]
for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
    for path in paths: results.add(attempt(lambda: os.open(path, flags)))
    fd = os.open("/proc/self/exe", os.O_PATH)
    results.add(attempt(lambda: os.open(f"/proc/self/fd/{fd}", flags)))
    fd = os.open("/proc/self/exe", os.O_RDONLY)
    results.add(attempt(lambda: os.open(f"/proc/self/fd/{fd}", flags)))
for line in open("/proc/self/maps"):
    parts = line.split()
    if len(parts) > 5 and parts[5].startswith("/"):
        for s in selves: results.add(attempt(lambda: os.open(f"{s}/map_files/{parts[0]}", os.O_RDWR)))
show(sorted(results))`);
  expect(results.length).toBeGreaterThan(0);
  expect(
    results.filter((result) => !["EROFS", "EACCES", "EPERM", "ETXTBSY", "ENOENT"].includes(result)),
  ).toEqual([]);
});

test("a script whose interpreter is /proc/self/exe, or pid 1's, becomes nothing else", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `for target in /proc/self/exe /proc/1/exe /proc/1/root/bin/sh; do
  printf '#!%s\\n' $target > s; chmod +x s; ./s < /dev/null > /dev/null 2>&1; echo $?
done; ls -l /proc/1/exe 2>&1 | grep -c denied; ls /proc/*/exe | wc -l`,
  });
  const [own, first, root, denied] = stdout.trim().split("\n");
  expect(["0", "126", "127", "40"]).toContain(own);
  expect([first, root]).toEqual(["126", "126"]);
  expect(denied).toBe("1");
});

test("kernel settings and triggers cannot be written, by their names or by aliases", async () => {
  const names = [
    "sys/kernel/core_pattern",
    "sys/kernel/modprobe",
    "sys/kernel/hostname",
    "sys/kernel/sysrq",
    "sys/vm/drop_caches",
    "sys/kernel/hotplug",
    "sys/fs/binfmt_misc/register",
    "sys/kernel/ns_last_pid",
    "sys/net/ipv4/ip_forward",
    "sysrq-trigger",
    "kcore",
    "kmsg",
    "mtrr",
    "latency_stats",
    "timer_list",
    "sched_debug",
    "scsi/scsi",
    "bus/pci/00",
    "irq/0/smp_affinity",
    "driver/rtc",
    "acpi/wakeup",
  ];
  const [write, read] = await evidence<[string[], string[]]>(`${SELVES}
names = ${JSON.stringify(names)}
def write(path):
    fd = os.open(path, os.O_WRONLY); os.write(fd, b"1")
prefixes = ["/proc/"] + [s + "/root/proc/" for s in selves] + [s + "/cwd/../../proc/" for s in selves]
def secret(path):
    with open(path, "rb") as file: return len(file.read(64)) > 0
shown = []
for prefix in prefixes:
    for name in names:
        try:
            if secret(prefix + name) and name != "sys/kernel/hostname": shown.append(prefix + name)
        except OSError: pass
show([sorted({attempt(lambda: write(prefix + name)) for prefix in prefixes for name in names}), shown])`);
  expect(
    write.filter((result) => !["EROFS", "EACCES", "ENOENT", "EPERM", "ENOTDIR"].includes(result)),
  ).toEqual([]);
  expect(read).toEqual([]);
});

test("nothing of the own process's entries can be written: scores, names, memory, maps, limits", async () => {
  const results = await evidence<string[]>(`${SELVES}
def write(path):
    fd = os.open(path, os.O_WRONLY); os.write(fd, b"-1000")
results = set()
for s in selves:
    for name in os.listdir("/proc/self"):
        path = f"{s}/{name}"
        if os.path.isdir(path): continue
        if name in ("exe",) or os.path.islink(path): continue
        results.add(attempt(lambda: write(path)))
for name in ("oom_score_adj", "oom_adj", "uid_map", "comm", "mem", "clear_refs", "coredump_filter", "timerslack_ns", "sched", "autogroup", "attr/current", "attr/exec", "loginuid", "make-it-fail", "timens_offsets"):
    results.add(attempt(lambda: write("/proc/self/" + name)))
show(sorted(results))`);
  expect(results.filter((result) => !["EROFS", "EACCES", "EPERM", "ENOENT"].includes(result))).toEqual([]);
});

test("of pid 1 nothing can be read but what ps shows", async () => {
  const readable = await evidence<string[]>(`
def readable(path):
    try:
        if os.path.isdir(path): return len(os.listdir(path)) > 0
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return len(os.read(fd, 16)) > 0
    except OSError: return False
closed = ("mem", "environ", "maps", "smaps", "smaps_rollup", "numa_maps", "fd", "fdinfo", "map_files", "root", "cwd", "exe", "stack", "syscall", "personality", "auxv", "pagemap", "io", "ns/mnt", "wchan_", "task/1/mem", "task/1/environ", "task/1/fd", "task/1/root", "task/1/maps", "patch_state", "timers", "attr/current_")
show([name for name in closed if readable("/proc/1/" + name)])`);
  expect(readable).toEqual([]);
});

test("processes of the machine are not listed, and their numbers lead nowhere", async () => {
  const own = process.pid;
  const [listed, found] = await evidence<[number, string[]]>(`
pids = [int(n) for n in os.listdir("/proc") if n.isdigit()]
found = []
for pid in list(range(1, 5000)) + [${own}, ${process.ppid}]:
    if pid in pids: continue
    for name in ("status", "cmdline", "task", "root"):
        if os.path.lexists(f"/proc/{pid}/{name}"): found.append(f"{pid}/{name}")
show([len(pids), found])`);
  expect(listed).toBe(2);
  expect(found).toEqual([]);
});

test("addresses of the kernel are hidden, and so is where memory lies", async () => {
  expect(
    await evidence(`
import re, struct
def numbers(path):
    try: return [n for n in re.findall(rb"\\bffff[0-9a-f]{12}\\b", open(path, "rb").read()) if n.strip(b"f0")]
    except OSError: return []
paths = ["/proc/kallsyms", "/proc/modules", "/proc/self/stack", "/proc/self/wchan", "/proc/self/syscall", "/proc/net/unix", "/proc/timer_list", "/proc/self/stat", "/proc/self/status", "/proc/iomem", "/proc/vmallocinfo", "/proc/slabinfo"]
frames = set()
with open("/proc/self/pagemap", "rb", buffering=0) as file:
    for line in list(open("/proc/self/maps"))[:20]:
        start = int(line.split("-")[0], 16)
        if start >> 47: continue
        file.seek(start // 4096 * 8)
        data = file.read(8)
        if len(data) == 8: frames.add(struct.unpack("<Q", data)[0] & (1 << 55) - 1)
show([[p for p in paths if numbers(p)], sorted(frames)])`),
  ).toEqual([[], [0]]);
});

test("counterpart: what programs ask /proc for is there", async () => {
  const { stdout, stderr, code } = await hostile({
    lang: "bash",
    code: `free -m | awk '/Mem/{print ($2 > 100)}'; nproc > /dev/null && echo ok; ps aux | grep -c '[i]nit'; uptime > /dev/null && echo ok
cat <(echo process substitution); echo to stdout > /dev/stdout; echo fd > /proc/self/fd/1
python3 -c 'import os; print(len(os.sched_getaffinity(0)) > 0, os.getloadavg() is not None, os.path.exists("/proc/self/status"))'`,
  });
  expect({ stdout, stderr, code }).toEqual({
    stdout: "1\nok\n1\nok\nprocess substitution\nto stdout\nfd\nTrue True True\n",
    stderr: "",
    code: 0,
  });
});
