import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, python, runOpen, stage } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { PROBE } from "@svc/test-kit/programs/probe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

const probe = <T>(program: string) => python<T>(jaild, PROBE + program);

describe("privileges", () => {
  it("has no capability in any set, no_new_privs, one filter, no groups", async () => {
    const { out } = await bash(jaild, "cat /proc/self/status");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(out).toMatch(new RegExp(`^${set}:\t0000000000000000$`, "m"));
    }
    expect(out).toMatch(/^NoNewPrivs:\t1$/m);
    expect(out).toMatch(/^Seccomp:\t2$/m);
    expect(out).toMatch(/^Groups:\t\s*$/m);
    expect(out).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    expect(out).toMatch(/^CoreDumping:\t0$/m);
  });

  it("has keepers above it with three capabilities, none to come by, and files of one slot's groups alone", async () => {
    const setsOf = (pid: number) => readFileSync(`/proc/${pid}/status`, "utf8");
    await jaild.full();
    await until(
      () => jaild.keepers.every((pid) => /^NoNewPrivs:\t1$/m.test(setsOf(pid))),
      "keepers are confined",
    );
    expect(setsOf(jaild.pid)).toMatch(/^CapBnd:\t0000000000000000$/m);
    for (const keeper of jaild.keepers) {
      for (const set of ["CapPrm", "CapEff"])
        expect(setsOf(keeper)).toMatch(new RegExp(`^${set}:\t000000000000000b$`, "m"));
      for (const set of ["CapInh", "CapBnd", "CapAmb"])
        expect(setsOf(keeper)).toMatch(new RegExp(`^${set}:\t0000000000000000$`, "m"));
      const links = readdirSync(`/proc/${keeper}/fd`).map((fd) => readlinkSync(`/proc/${keeper}/fd/${fd}`));
      const groups = links.filter((link) => link.includes("slot-") || link.endsWith(jaild.group));
      expect(groups.length).toBeGreaterThan(5);
      expect(groups.filter((link) => !/slot-\d+\/[a-z_.]+$/.test(link))).toEqual([]);
      expect(new Set(groups.map((link) => /slot-\d+/.exec(link)?.[0])).size).toBe(1);
    }
  });

  it("cannot become anyone else", async () => {
    expect(
      await probe(`print(json.dumps([attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)),
  attempt(lambda: os.setgroups([0])), attempt(lambda: os.setuid(65534)), attempt(lambda: os.setuid(1000))]))`),
    ).toEqual(["EINVAL", "EINVAL", "EPERM", "EINVAL", "ok"]);
  });

  it("finds no setuid program and gains nothing from making one", async () => {
    const { out } = await bash(
      jaild,
      "find / -xdev -perm /6000 -type f 2>/dev/null; cp /usr/bin/id .; chmod 6755 id; ./id -u; stat -c %U id",
    );
    expect(out).toBe("1000\nsandbox\n");
  });

  it("keeps pid 1 out of reach", async () => {
    const seen = await probe<Record<string, string>>(`
def read(name):
    with open("/proc/1/" + name, "rb") as file: file.read(1)
print(json.dumps(dict(kill=attempt(lambda: os.kill(1, 9)), stop=attempt(lambda: os.kill(1, 19)), alive=attempt(lambda: os.kill(1, 0)),
  mem=attempt(lambda: read("mem")), environ=attempt(lambda: read("environ")), maps=attempt(lambda: read("maps")),
  fd=attempt(lambda: os.listdir("/proc/1/fd")), root=attempt(lambda: os.listdir("/proc/1/root/")), cwd=attempt(lambda: os.listdir("/proc/1/cwd/")),
  exe=attempt(lambda: os.readlink("/proc/1/exe")))))`);
    expect(seen).toMatchObject({ kill: "ok", stop: "ok", alive: "ok" });
    for (const name of ["mem", "environ", "maps", "fd", "root", "cwd", "exe"])
      expect([name, seen[name]]).toEqual([name, "EACCES"]);
  });

  it("cannot read the traces of kernel addresses or of the host", async () => {
    const { out } = await bash(
      jaild,
      "cat /proc/cmdline /proc/kallsyms /proc/config.gz /proc/modules /proc/keys /proc/interrupts | wc -c; hostname; cat /proc/self/cgroup",
    );
    expect(out).toMatch(/^0\nsandbox\n/);
    expect(out).not.toContain(jaild.group);
    const first = await bash(jaild, "tr -d '\\0' < /proc/1/cmdline; cat /proc/1/comm");
    expect(first.out).toBe("initinit\n");
  });
});

describe("/proc", () => {
  it("shows only the run's own processes", async () => {
    const pids = await probe<string[]>(
      `print(json.dumps(sorted(n for n in os.listdir("/proc") if n.isdigit())))`,
    );
    expect(pids).toEqual(["1", "2"]);
  });

  it("has its own processes and what jaild made at the top, and nothing else of the host's by any path", async () => {
    const host = readdirSync("/proc").filter((name) => !/^\d+$/.test(name));
    const made = [
      "cpuinfo",
      "filesystems",
      "loadavg",
      "locks",
      "meminfo",
      "mounts",
      "net",
      "self",
      "stat",
      "sys",
    ];
    made.push("thread-self", "uptime", "version", "vmstat");
    const [listed, found] = await probe<[string[], string[]]>(`
names = ${JSON.stringify(host)}
listed, found = set(), set()
for prefix in ("/proc/", "/proc/self/root/proc/", "/proc/thread-self/root/proc/", f"/proc/{os.getpid()}/task/{os.getpid()}/root/proc/",
               "/proc/self/cwd/../../proc/"):
    listed |= {n for n in os.listdir(prefix) if not n.isdigit()}
    found |= {n for n in names if os.path.lexists(prefix + n)}
print(json.dumps([sorted(listed), sorted(found)]))`);
    expect(host.length).toBeGreaterThan(made.length);
    expect(listed).toEqual(["self", "thread-self"]);
    expect(found).toEqual(made);
    const { out } = await bash(
      jaild,
      "cd /proc; cat locks version; grep ' / ' mounts; cat sys/kernel/hostname; cd sys; find . | wc -l",
    );
    expect(out).toMatch(/^Linux version .*\noverlay \/ overlay .*\nsandbox\n\d+\n$/);
  });

  it("shows of /proc/net what belongs to the run's own network alone", async () => {
    const host = readdirSync("/proc/net");
    const open = ["dev", "if_inet6", "route", "tcp", "tcp6", "udp", "udp6", "unix"];
    const readable = await probe<string[]>(`
names = ${JSON.stringify(host)}
def shows(path):
    try:
        if os.path.isdir(path): return any(shows(path + "/" + n) for n in [*os.listdir(path), "rt_cache", "arp_cache", "nf_log", "lo"])
        return os.open(path, os.O_RDONLY) >= 0
    except OSError: return False
print(json.dumps(sorted({n for n in names for p in ("/proc/net/", "/proc/self/net/", "/proc/1/net/", f"/proc/{os.getpid()}/task/{os.getpid()}/net/") if shows(p + n)})))`);
    expect(host).toContain("softnet_stat");
    expect(readable).toEqual(open.filter((name) => host.includes(name)));
    expect(readable).toContain("dev");
  });

  it("is read-only to the last file", async () => {
    const seen = await probe<string[]>(`
def write(path):
    with open(path, "w") as file: file.write("1")
paths = ["/proc/self/oom_score_adj", "/proc/self/uid_map", "/proc/self/comm", "/proc/self/mem", "/proc/self/coredump_filter",
  "/proc/sys/kernel/hostname", "/proc/meminfo", "/proc/sys/vm/swappiness", "/proc/self/setgroups", "/proc/self/timerslack_ns"]
print(json.dumps([p for p in paths if attempt(lambda: write(p)) not in ("EROFS", "EACCES")]))`);
    expect(seen).toEqual([]);
  });

  it("states the run's own limits", async () => {
    const { out } = await bash(
      jaild,
      "grep MemTotal /proc/meminfo; grep -c processor /proc/cpuinfo; nproc; free -m | awk '/Mem/{print $2}'; uptime >/dev/null && ps aux | wc -l",
      {
        limits: { memoryBytes: 128 << 20 },
      },
    );
    const [total, processors, nproc, free, processes] = out.trim().split("\n");
    expect(total).toMatch(/131072 kB/);
    expect(processors).toBe(nproc);
    expect(free).toBe("128");
    expect(Number(processes)).toBeGreaterThanOrEqual(3);
  });
});

describe("the file system", () => {
  it("can be written in three places only", async () => {
    const { out } = await bash(
      jaild,
      `find / /dev -xdev -writable -not -type l 2>/dev/null | grep -v '^/proc' | sort; for d in / /etc /usr/bin /run /var /dev /root /mnt /home /opt /srv; do
        touch $d/x 2>/dev/null && echo "wrote $d"; done; for d in /mnt/data /tmp /dev/shm; do touch $d/x && echo "ok $d"; done`,
    );
    const lines = out.trim().split("\n");
    expect(lines.filter((line) => line.startsWith("ok"))).toEqual(["ok /mnt/data", "ok /tmp", "ok /dev/shm"]);
    // -xdev stays on the root and on /dev: nothing else is writable but mount points seen through them
    expect(
      lines.filter((line) => !line.startsWith("ok") && !["/mnt/data", "/tmp", "/var/tmp"].includes(line)),
    ).toEqual(["/dev/full", "/dev/null", "/dev/random", "/dev/shm", "/dev/urandom", "/dev/zero"]);
  });

  it("mounts everything nosuid, and everything but /dev nodev; programs run from the workspace", async () => {
    const { out } = await bash(
      jaild,
      "awk '{print $2, $4}' /proc/self/mounts; printf '#!/bin/sh\\necho ran\\n' > p; chmod +x p; ./p",
    );
    const mounts = out
      .trim()
      .split("\n")
      .filter((line) => line.startsWith("/"));
    expect(mounts.filter((line) => !line.includes("nosuid"))).toEqual([]);
    expect(mounts.filter((line) => !line.includes("nodev") && !line.startsWith("/dev "))).toEqual([]);
    expect(mounts.filter((line) => /^\/(proc.*|dev)? /.test(line) && !/[ ,]ro[,]/.test(line))).toEqual([]);
    expect(out).toContain("ran");
  });

  it("has the usual devices and no other", async () => {
    const { out } = await bash(
      jaild,
      "ls /dev | tr '\\n' ' '; head -c 4 /dev/zero | wc -c; head -c 8 /dev/urandom | wc -c; echo x > /dev/null; echo x > /dev/full 2>/dev/null || echo full",
    );
    expect(out).toBe("fd full null random shm stderr stdin stdout urandom zero 4\n8\nfull\n");
  });

  it("cannot be left by .., links or descriptors", async () => {
    const { out } = await bash(
      jaild,
      "cd ../../../../..; pwd; ls -d /work /sys /home/* 2>/dev/null; ln -s /proc/1/root r; ls r 2>/dev/null; ls /proc/self/map_files >/dev/null 2>&1 || true; echo end",
    );
    expect(out).toBe("/\nend\n");
  });
});

describe("two runs", () => {
  it("see nothing of each other at the same time", async () => {
    const first = await stage(jaild, {
      argv: [
        "/usr/bin/python3",
        "-c",
        `import socket, time, ctypes, os
s = socket.socket(socket.AF_UNIX); s.bind("\\0meeting"); s.listen()
for d in ("/tmp", "/dev/shm", "/mnt/data"): open(d + "/secret", "w").write("x")
libc = ctypes.CDLL(None); print(libc.shmget(4711, 4096, 0o1666), flush=True)
time.sleep(60)`,
      ],
      limits: { wallMs: slow(60_000) },
    });
    first.tellOutput();
    let said = "";
    await first.start((_stream, bytes) => {
      said += bytes;
    });
    await until(() => said.endsWith("\n"), "the first run has its socket, its files and its memory");
    expect(said).toMatch(/^\d+\n$/);
    const seen = await probe<Record<string, unknown>>(`import socket, glob
s = socket.socket(socket.AF_UNIX)
print(json.dumps(dict(connect=attempt(lambda: s.connect("\\0meeting")), files=glob.glob("/tmp/*") + glob.glob("/dev/shm/*") + glob.glob("/mnt/data/*"),
  shm=call(29, 4711, 4096, 0o600), pids=[n for n in os.listdir("/proc") if n.isdigit()], unix=len(open("/proc/net/unix").readlines()))))`);
    expect(seen).toEqual({ connect: "ECONNREFUSED", files: [], shm: "ENOENT", pids: ["1", "2"], unix: 2 });
    expect(await first.query()).toBeDefined();
    first.close();
  });

  it("find nothing of an earlier run on the same slot", async () => {
    const single = await Jaild.start({ slots: 1 });
    const script =
      "ls -A /tmp /dev/shm /mnt/data; ipcs -m 2>/dev/null | grep -c sandbox; echo left > /tmp/a; echo left > /dev/shm/b; echo left > c; python3 -c 'import ctypes; ctypes.CDLL(None).shmget(1, 4096, 0o1666)'";
    const first = await bash(single, script);
    const second = await bash(single, script);
    expect(second.out).toBe(first.out);
    expect(first.out).toBe("/dev/shm:\n\n/mnt/data:\n\n/tmp:\n0\n");
    await single.stop();
  });

  it("run as different users of the host", async () => {
    const running = await Promise.all(
      [0, 1, 2].map(() =>
        runOpen(jaild, { argv: ["/bin/bash", "-c", "awk '{print $2}' /proc/self/uid_map"] }),
      ),
    );
    expect(new Set(running.map(({ out }) => out)).size).toBe(3);
    for (const { run } of running) run.close();
  });
});
