/** What a program finds around itself: nothing of the machine, of the service, or of other programs. */

import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const system = sharedSystem();
const api = new Api(system.url);

async function python(code: string, more: object = {}): Promise<unknown> {
  const answer = await api.exec({ lang: "py", code: `import json, os, sys\n${code}`, ...more });
  if (answer.code !== 0) throw new Error(answer.stderr);
  return JSON.parse(answer.stdout);
}

async function bash(code: string): Promise<string> {
  return (await api.exec({ lang: "bash", code })).stdout;
}

describe("network", () => {
  test("no address family but AF_UNIX gives a socket, with or without garbage in the high bits", async () => {
    const code = `
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
opened = set()
for family in range(64):
    for kind in (1, 2, 3, 5):
        for high in (0, 1 << 32, 0xffffffff << 32):
            for flags in (0, 0o2000000):
                fd = libc.syscall(41, ctypes.c_ulong(family | high), ctypes.c_ulong(kind | flags | high), ctypes.c_ulong(0))
                if fd >= 0:
                    opened.add(family)
                    os.close(fd)
print(json.dumps(sorted(opened)))`;
    expect(await python(code)).toEqual([1]);
  });

  test("names are not resolved, ports of the machine are not reached", async () => {
    const ports = Object.values(system.instance.ports);
    const answer = await api.exec({
      lang: "bash",
      code: `
getent hosts example.com && echo resolved
for port in ${ports.join(" ")} 53 80 443; do
  for host in 127.0.0.1 169.254.169.254 ::1; do (: < /dev/tcp/$host/$port) 2>/dev/null && echo "reached $host:$port"; done
done
(: < /dev/udp/8.8.8.8/53) 2>/dev/null && echo "udp"
ls -A /run /sys/class/net 2>/dev/null | grep -v : | grep -vx svc | grep .
ls -A /run/svc 2>/dev/null
for f in 3190.sock tools.json tools.tsv tools.names; do [ -e /run/svc/$f ] && echo "found $f"; done
cat /proc/net/route /proc/net/tcp 2>/dev/null | grep -v '^Iface\\|local_address'
exit 0`,
    });
    expect(answer).toMatchObject({ stdout: "", code: 0 });
  });

  test("sockets between the program's own processes work", async () => {
    const code = `
import socket
left, right = socket.socketpair()
server = socket.socket(socket.AF_UNIX); server.bind("/tmp/s"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("/tmp/s")
left.send(b"ok")
print(json.dumps(right.recv(2).decode()))`;
    expect(await python(code)).toBe("ok");
  });
});

describe("identity", () => {
  test("an ordinary user without capabilities, who can gain none", async () => {
    const status = await bash("cat /proc/self/status");
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1]?.trim();
    expect(field("Uid")).toBe("1000\t1000\t1000\t1000");
    expect(field("Gid")).toBe("1000\t1000\t1000\t1000");
    expect(field("Groups")).toMatch(/^(1000)?$/);
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      expect(field(set), set).toBe("0000000000000000");
    }
    expect(field("NoNewPrivs")).toBe("1");
    expect(field("Seccomp")).toBe("2");
  });

  test("privileged calls are refused", async () => {
    const code = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def refused(call):
    try:
        return call() not in (0, None)
    except OSError:
        return True
calls = {
    "setuid": lambda: os.setuid(0), "chroot": lambda: os.chroot("/tmp"), "mknod": lambda: os.mknod("d", 0o20666, os.makedev(1, 1)),
    "nice": lambda: os.nice(-5), "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    "unshare": lambda: libc.unshare(0x10000000), "ptrace": lambda: libc.ptrace(16, 1, None, None),
    "reboot": lambda: libc.reboot(0), "sethostname": lambda: libc.sethostname(b"x", 1), "swapon": lambda: libc.swapon(b"/tmp/x", 0),
    "kill init": lambda: os.kill(1, 0) or 0 if False else libc.syscall(321, 0, None, 0), "chown": lambda: os.chown("/mnt/data", 0, 0),
}
print(json.dumps([name for name, call in calls.items() if not refused(call)]))`;
    expect(await python(code)).toEqual([]);
  });

  test("the environment, the arguments and the descriptors hold nothing of the service", async () => {
    const variables = (await python("print(json.dumps(dict(os.environ)))")) as Record<string, string>;
    for (const [name, value] of Object.entries(variables)) {
      expect(name).not.toMatch(/SVC|SANDBOX|TOKEN|SECRET|REDIS|GRANT|MANIFEST|_URL|_PORT/i);
      expect(value).not.toMatch(/127\.0\.0\.1|ceg1|svc-copy/);
    }
    expect(variables).toMatchObject({ HOME: "/mnt/data", USER: "sandbox", LANG: "C.UTF-8" });
    const descriptors = (await python("print(json.dumps(sorted(os.listdir('/proc/self/fd'))))")) as string[];
    // The last one is the listing of the folder itself.
    expect(descriptors).toEqual(["0", "1", "2", "3"]);
    const links = await bash("for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done");
    expect(links).toMatch(/^\/dev\/null\npipe:\[\d+\]\npipe:\[\d+\]\n$/);
  });
});

describe("file system", () => {
  test("only the workspace, /tmp and /dev/shm can be written", async () => {
    const code = `
written = []
for folder, folders, files in os.walk("/", topdown=True):
    if folder.startswith("/proc"): folders.clear(); continue
    if os.access(folder, os.W_OK):
        try:
            open(os.path.join(folder, ".probe"), "w").close()
            written.append(folder)
        except OSError: pass
print(json.dumps(sorted(set(written))))`;
    const folders = (await python(code)) as string[];
    expect(folders).toEqual(["/dev/shm", "/mnt/data", "/tmp"]);
  });

  test("the machine's files are not there", async () => {
    const hidden = [
      system.instance.dataDir,
      "/root",
      "/home",
      "/etc/shadow",
      "/etc/ssh",
      "/var/log",
      "/sys",
      "/boot",
    ];
    const code = `
found = []
for path in ${JSON.stringify(hidden)} + ["/proc/1/root", "/proc/1/cwd", "/proc/1/exe", "/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/modules"]:
    try:
        if os.path.isdir(path): found += [os.path.join(path, name) for name in os.listdir(path)]
        elif len(open(path, "rb").read(1)) > 0: found.append(path)
    except OSError: pass
print(json.dumps(found))`;
    expect(await python(code)).toEqual([]);
  });

  test("nothing of the system carries a setuid bit or is a device beyond the harmless ones", async () => {
    const code =
      "find / -xdev -perm /6000 -not -path '/proc/*' 2>/dev/null; find /dev -type c -o -type b | sort";
    expect(await bash(code)).toBe("/dev/full\n/dev/null\n/dev/random\n/dev/urandom\n/dev/zero\n");
  });
});

describe("processes", () => {
  test("a program sees its own processes only", async () => {
    const code =
      "ls /proc | grep -cE '^[0-9]+$'; tr '\\0' ' ' < /proc/1/cmdline; echo; cat /proc/1/comm; hostname";
    const [count, ...rest] = (await bash(code)).split("\n");
    expect(Number(count)).toBeLessThan(8);
    expect(rest).toEqual(["init ", "init", "sandbox", ""]);
  });

  test("two programs at the same time see nothing of each other", async () => {
    const marker = newMarker();
    const first = api.exec({
      lang: "py",
      args: [marker],
      code: `
import socket, time, os
for place in ("/tmp", "/dev/shm", "/mnt/data"): open(f"{place}/shared", "w").write("secret")
server = socket.socket(socket.AF_UNIX); server.bind("\\0shared"); server.listen()
time.sleep(${slow(4)})`,
    });
    await until(() => processesWith(marker).length > 0, slow(20_000));
    const second = (await python(`
import ctypes, socket
found = [p for p in ("/tmp/shared", "/dev/shm/shared", "/mnt/data/shared") if os.path.exists(p)]
client = socket.socket(socket.AF_UNIX)
try: client.connect("\\0shared"); found.append("abstract socket")
except OSError: pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    if b"${marker}" in open(f"/proc/{pid}/cmdline", "rb").read(): found.append(pid)
print(json.dumps(found))`)) as string[];
    expect(processesWith(marker).length).toBeGreaterThan(0);
    expect(second).toEqual([]);
    expect((await first).code).toBe(0);
  });

  test("nothing is left for the next program on the same slot", async () => {
    const slots = 8;
    const litter = `echo x | tee /tmp/left /dev/shm/left /mnt/data/left /mnt/data/.left > /dev/null; ipcmk -M 1000 -p 666`;
    for (let n = 0; n < slots; n++) await api.exec({ lang: "bash", code: litter });
    for (let n = 0; n < slots; n++) {
      const code = "ls -A /tmp /dev/shm /mnt/data; ipcs -m | grep 0x";
      expect(await bash(code)).toBe("/dev/shm:\n\n/mnt/data:\nscript.sh\n\n/tmp:\n");
    }
  });
});
