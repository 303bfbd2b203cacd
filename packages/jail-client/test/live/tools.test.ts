import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, python, runJob, stage } from "@svc/test-kit/jail/run";
import { PROBE } from "@svc/test-kit/programs/probe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const OWNER = 4_242_424;
let jaild: Jaild;
let servers: Server[] = [];
beforeEach(async () => {
  jaild = await Jaild.start({ slots: 2, args: ["--socket-uid", `${OWNER}`, "--socket-gid", `${OWNER}`] });
});
afterEach(async () => {
  for (const server of servers) server.close();
  servers = [];
  await jaild.stop();
});

const directory = (slot: number) => join(jaild.tools, `${slot}`);

/** A socket in a slot's directory that answers with its own name. */
async function listen(slot: number): Promise<void> {
  const path = join(directory(slot), "3190.sock");
  const server = createServer((socket) => socket.end(`slot ${slot}`));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  chmodSync(path, 0o666);
}

const CONNECT = `${PROBE}
import socket
def ask(path):
    s = socket.socket(socket.AF_UNIX); s.connect(path)
    return s.makefile().read()
`;

describe("the tool directory of a jail", () => {
  it("is empty and cannot be changed in a plain run", async () => {
    const program = `${PROBE}
import stat
s = os.stat("/run/svc")
print(json.dumps([stat.S_IMODE(s.st_mode), s.st_uid, attempt(lambda: os.listdir("/run/svc")), os.listdir("/run"),
  [attempt(lambda: open("/run/svc/x", "w")), attempt(lambda: os.mkdir("/run/svc/x")), attempt(lambda: os.chmod("/run/svc", 0o777)),
   attempt(lambda: os.utime("/run/svc")), attempt(lambda: os.symlink("x", "/run/svc/x")), attempt(lambda: os.mkfifo("/run/svc/x")),
   attempt(lambda: open("/run/x", "w")), attempt(lambda: os.rename("/run/svc", "/run/x")), attempt(lambda: os.rmdir("/run/svc"))],
  [line.split(" ")[5] for line in open("/proc/self/mountinfo") if " /run/svc " in line][0]]))`;
    const [mode, uid, list, run, changes, options] = await python<
      [number, number, string, string[], string[], string]
    >(jaild, program);
    expect({ mode, uid, list, run }).toEqual({ mode: 0o711, uid: 65_534, list: "EACCES", run: ["svc"] });
    expect(changes.filter((result) => !["EROFS", "EACCES", "EPERM", "EBUSY"].includes(result))).toEqual([]);
    for (const option of ["ro", "nosuid", "nodev", "noexec"]) expect(options.split(",")).toContain(option);
    expect(readdirSync(directory(0))).toEqual([]);
  });

  it("belongs to the owner of jaild's socket, below a directory of root's", () => {
    expect(readdirSync(jaild.tools).sort()).toEqual(["0", "1"]);
    expect(statSync(jaild.tools)).toMatchObject({ uid: 0 });
    for (const slot of [0, 1]) {
      const { uid, gid, mode } = statSync(directory(slot));
      expect({ uid, gid, mode: mode & 0o7777 }).toEqual({ uid: OWNER, gid: OWNER, mode: 0o711 });
    }
  });

  it("lets a program reach the socket and the files of its own slot, and change none of them", async () => {
    const job = {
      argv: [
        "/usr/bin/python3",
        "-c",
        `${CONNECT}
p = "/run/svc/3190.sock"
print(json.dumps([ask(p), open("/run/svc/tools.json").read(), [attempt(lambda: os.unlink(p)), attempt(lambda: os.chmod(p, 0)),
  attempt(lambda: os.rename(p, "/run/svc/y")), attempt(lambda: os.link(p, "/mnt/data/y")), attempt(lambda: open("/run/svc/tools.json", "w")),
  attempt(lambda: os.truncate("/run/svc/tools.json", 0)), attempt(lambda: os.setxattr(p, "user.x", b"")),
  attempt(lambda: socket.socket(socket.AF_UNIX).bind("/run/svc/z"))]]))`,
      ],
    };
    const run = await stage(jaild, job);
    await listen(run.slot);
    const file = join(directory(run.slot), "tools.json");
    writeFileSync(file, "{}");
    chmodSync(file, 0o444);
    await run.start();
    const outcome = await run.outcome();
    expect(outcome.stderr.toString()).toBe("");
    const [answer, text, changes] = JSON.parse(outcome.stdout.toString()) as [string, string, string[]];
    expect([answer, text]).toEqual([`slot ${run.slot}`, "{}"]);
    expect(changes.filter((result) => !["EROFS", "EACCES", "EPERM", "EXDEV"].includes(result))).toEqual([]);
    expect(readFileSync(file, "utf8")).toBe("{}");
    run.close();
  });

  it("shows nothing of another slot", async () => {
    await jaild.full(); // before that, slots are still emptied
    for (const slot of [0, 1]) await listen(slot);
    const program = `${CONNECT}
print(json.dumps([ask("/run/svc/3190.sock")] + [attempt(lambda: ask(p)) for p in
  ["/run/svc/../0/3190.sock", "/run/svc/../1/3190.sock", "/run/0/3190.sock", "${directory(0)}/3190.sock", "${directory(1)}/3190.sock",
   "/proc/1/root/run/0/3190.sock"]]))`;
    const run = await stage(jaild, { argv: ["/usr/bin/python3", "-c", program] });
    await run.start();
    const [own, ...others] = JSON.parse((await run.outcome()).stdout.toString()) as string[];
    expect(own).toBe(`slot ${run.slot}`);
    expect(new Set(others)).toEqual(new Set(["ENOENT", "EACCES"]));
    run.close();
  });

  it("stays out of reach under a link that a program makes", async () => {
    const { out } = await bash(jaild, "ln -s /run/svc d; echo x > d/x; echo $?; cp /bin/true d/; echo $?");
    expect(out).toBe("1\n1\n");
  });

  it("is emptied before the slot is used again; links in it lead nowhere", async () => {
    const outside = join(jaild.tools, "..", "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "kept"), "x");
    const run = await stage(jaild, { argv: ["/bin/true"] });
    const own = directory(run.slot);
    symlinkSync(outside, join(own, "link"));
    symlinkSync(join(outside, "kept"), join(own, "file"));
    symlinkSync("nowhere", join(own, "dangling"));
    mkdirSync(join(own, "directory"));
    for (let i = 0; i < 600; i++) writeFileSync(join(own, `f${i}`), "");
    chmodSync(own, 0o777);
    await run.start();
    await run.outcome();
    run.close();
    await until(() => readdirSync(own).length === 0, "it is empty");
    await jaild.full();
    expect(readFileSync(join(outside, "kept"), "utf8")).toBe("x");
    expect(statSync(own).mode & 0o7777).toBe(0o711);
    expect((await runJob(jaild, { argv: ["/bin/true"] })).end.exitCode).toBe(0);
  });

  it("keeps its slot out of use while it cannot be emptied, and no other", async () => {
    const run = await stage(jaild, { argv: ["/bin/true"] });
    const own = directory(run.slot);
    mkdirSync(join(own, "a"));
    writeFileSync(join(own, "a", "b"), "");
    run.close();
    await until(() => jaild.keepers.length === 1, "the slot is empty");
    for (let i = 0; i < 3; i++) expect((await bash(jaild, "echo next")).out).toBe("next\n");
    expect(existsSync(join(own, "a", "b"))).toBe(true);
  });

  it("is gone when jaild ends", async () => {
    await listen(0);
    await jaild.kill("SIGTERM");
    expect(existsSync(jaild.tools)).toBe(false);
  });

  it("is refused when others than root may change its base", async () => {
    const base = join(jaild.tools, "..", "open");
    mkdirSync(base);
    chmodSync(base, 0o777);
    await expect(Jaild.start({ slots: 1, args: ["--tool-directory", base] })).rejects.toThrow(
      /must be owned and writable by root alone/,
    );
    symlinkSync("/tmp", join(jaild.tools, "..", "link"));
    const link = join(jaild.tools, "..", "link");
    await expect(Jaild.start({ slots: 1, args: ["--tool-directory", link] })).rejects.toThrow(/cannot open/);
  });
});
