/**
 * Copies of one interpreter: what a program changed in it is not there for the next, the interpreter that they were
 * copied from cannot be found, reached or hurt, and nobody can foretell another's random numbers, keys and names.
 */

import { childrenOf, isZygote, killProcess } from "@svc/test-kit/jail/host";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { describe, expect, test } from "vitest";
import { besiege, evidence, hostile, PYTHON } from "../support/hostile.ts";
import { attacker, bystander, running, system } from "../support/running.ts";

const WARM = process.env.SANDBOX_WARM_START !== "off";
const REPLACED_MS = 60_000;
/** None where they are in microVMs, which their own tests are about. */
const zygotes = () => (IN_GUESTS ? [] : childrenOf(system.pid("jaild")).filter(isZygote));
/** Each kind of copy is chosen by the words of a program. */
const KINDS = [
  ["python", ""],
  ["python-standard", "import asyncio\n"],
  ["python-data", "import numpy, pandas\n"],
] as const;

async function starts(kind: "warm" | "cold"): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${running.instance.ports.runner}/metrics`)).text();
  return Number(
    new RegExp(`^svc_sandbox_starts_total\\{start="${kind}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0,
  );
}

test.skipIf(IN_GUESTS)(`these tests start ${WARM ? "warm" : "cold"}`, async () => {
  const before = { warm: await starts("warm"), cold: await starts("cold") };
  for (const [, words] of KINDS) await attacker.exec({ lang: "py", code: `${words}print(1)` });
  const more = { warm: (await starts("warm")) - before.warm, cold: (await starts("cold")) - before.cold };
  const count = KINDS.length;
  expect(more).toEqual(WARM ? { warm: count, cold: 0 } : { warm: 0, cold: count });
  expect(zygotes().length).toBe(WARM ? count : 0);
});

/** Whatever a program can change in its interpreter, and in files that interpreters read. */
const CHANGES = `
import atexit, builtins, codecs, copyreg, decimal, gc, importlib, json, linecache, locale, logging, os, random, re, signal, sys, tempfile, threading, warnings
def spoiled(*args, **more): raise SystemExit("spoiled")
for place in ("/tmp", "/dev/shm", "/mnt/data"):
    for name in ("json", "random", "numpy", "sitecustomize", "usercustomize"): open(f"{place}/{name}.py", "w").write("raise SystemExit('spoiled')")
for folder in list(sys.path) + [os.path.dirname(os.__file__)]:
    try: open(f"{folder}/planted.pth", "w").write("import os; os._exit(66)")
    except OSError: pass
os.environ["PLANTED"] = os.environ["PYTHONSTARTUP"] = "/tmp/json.py"
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGALRM): signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
codecs.register(lambda name: spoiled()); sys.settrace(spoiled) if False else None
sys.setrecursionlimit(50_000); sys.setswitchinterval(5); gc.disable(); decimal.getcontext().prec = 2
locale.setlocale(locale.LC_ALL, "C"); warnings.simplefilter("error"); logging.basicConfig(level=1); os.umask(0)
threading.excepthook = sys.excepthook = sys.unraisablehook = spoiled
random.seed(1); tempfile.tempdir = "/mnt/data"; linecache.cache["main.py"] = (1, None, ["spoiled"], "main.py")
sys.path_importer_cache.clear(); sys.meta_path.insert(0, spoiled); sys.path.insert(0, "/tmp")
json.dumps = json.loads = re.compile = builtins.open = builtins.len = builtins.__import__ = spoiled
atexit.register(lambda: os.write(1, b"changed\\n"))
`;
const LOOK = `
import builtins, codecs, decimal, gc, json, linecache, locale, logging, os, random, re, signal, sys, tempfile, threading, warnings
kinds = {type(getattr(builtins, name)).__name__ for name in ("open", "len", "__import__")}
print(json.dumps([sorted(kinds), re.compile("a").pattern, random.__file__ == os.path.dirname(os.__file__) + "/random.py", [n for n in ("PLANTED", "PYTHONSTARTUP") if n in os.environ],
  sorted(n for n in range(1, 32) if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN), sorted(signal.pthread_sigmask(0, [])),
  sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), decimal.getcontext().prec, os.umask(18), logging.root.handlers,
  sys.excepthook is sys.__excepthook__, tempfile.gettempdir(), "spoiled" in str(linecache.cache), [p for p in sys.path if p == "/tmp"],
  [str(finder) for finder in sys.meta_path if "spoiled" in str(finder)], [f for f in warnings.filters if f[0] == "error"], os.listdir("."), os.listdir("/tmp")]))
`;
const UNCHANGED = [
  ["builtin_function_or_method"],
  "a",
  true,
  [],
  [13, 25],
  [],
  1000,
  0.005,
  true,
  28,
  18,
  [],
  true,
  "/tmp",
  false,
  [],
  [],
  [],
  ["main.py"],
  [],
];

test.each(KINDS)(
  "what a program changed in its interpreter is not there for the next: %s",
  async (_kind, words) => {
    for (let round = 0; round < 3; round++) {
      const changed = await hostile({ lang: "py", code: words + CHANGES });
      expect(changed).toMatchObject({ code: 0, stdout: "changed\n" });
      const next = await bystander.exec({ lang: "py", code: words + LOOK });
      expect(next).toMatchObject({ code: 0, stderr: "" });
      expect(JSON.parse(next.stdout)).toEqual(UNCHANGED);
    }
  },
);

test.each(KINDS)("the interpreter that it was copied from is nowhere: %s", async (_kind, words) => {
  const before = zygotes();
  const found = await evidence<Record<string, unknown>>(
    `${words}import signal
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
others = [pid for pid in range(1, 70_000) if pid != os.getpid()]
def outcome(action):
    try: action(); return "ok"
    except OSError as error: return errno.errorcode[error.errno]
show({
  "processes": [os.getpid(), os.getppid(), sorted(pids)],
  "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
  "shared and writable": [line for line in open("/proc/self/maps") if line.split()[1][1] == "w" and line.split()[1][3] == "s"],
  "killed": sorted({outcome(lambda: os.kill(pid, signal.SIGKILL)) for pid in others if pid != 1}),
  "opened": sorted({outcome(lambda: os.pidfd_open(pid)) for pid in others if pid != 1}),
  "traced": sorted({call(101, 16, pid, 0, 0) for pid in others[:300]}),
  "read": sorted({call(310, pid, 0, 0, 0, 0, 0) for pid in others[:300]}),
  "of the first process": {name: outcome(lambda: open("/proc/1/" + name, "rb").read(1)) for name in ("mem", "environ", "maps", "auxv", "syscall", "stack")},
  "its descriptors and links": {name: outcome(lambda: os.listdir("/proc/1/fd") if name == "fd" else os.readlink("/proc/1/" + name)) for name in ("fd", "exe", "cwd", "root", "ns/mnt")},
  "unix sockets": len(open("/proc/net/unix").readlines()) - 1,
})`.replace("show({", "import errno\nshow({"),
  );
  expect(found).toMatchObject({
    processes: [2, 1, [1, 2]],
    descriptors: ["0", "1", "2"],
    "shared and writable": [],
    killed: ["ESRCH"],
    opened: ["ESRCH"],
    traced: ["ENOSYS"],
    read: ["ENOSYS"],
    "unix sockets": 0,
  });
  for (const at of ["of the first process", "its descriptors and links"])
    expect(Object.values(found[at] as object)).not.toContain("ok");
  expect(zygotes()).toEqual(before);
});

const RANDOM = `import os, random, secrets, tempfile, uuid, multiprocessing.process as process
values = [random.random(), random.SystemRandom().random(), secrets.token_hex(8), str(uuid.uuid4()), str(uuid.uuid1()), tempfile.mktemp(), next(tempfile._get_candidate_names()), process.current_process().authkey.hex(), os.urandom(8).hex()]
`;
const DATA = `import numpy
values += [numpy.random.rand(), numpy.random.default_rng().random(), numpy.random.RandomState().rand(), int(numpy.random.randint(1 << 60))]
`;

test.each([
  ["python", RANDOM],
  ["python-standard", `import asyncio\n${RANDOM}`],
  ["python-data", RANDOM + DATA],
])("random numbers, keys, ids and names are of one program alone: %s", async (_kind, code) => {
  const programs = Array.from({ length: 6 }, () => ({ lang: "py", code: `${PYTHON}${code}show(values)` }));
  const answers = await besiege(() =>
    Promise.all(programs.map((program, n) => (n % 2 === 0 ? attacker : bystander).exec(program))),
  );
  const all = answers.map(({ stdout }) => JSON.parse(stdout) as unknown[]);
  const first = all[0] ?? [];
  expect(first.length).toBeGreaterThan(8);
  for (let at = 0; at < first.length; at++)
    expect(new Set(all.map((values) => values[at])).size, `value ${at}`).toBe(6);
});

// In microVMs the layout is the same until the launcher starts again: docs/microvm.md says so.
describe.skipIf(IN_GUESTS)("the secrets of a layout", () => {
  const SEEN =
    "import ctypes\nprint(hash('a string'), ctypes.cast(ctypes.CDLL(None).printf, ctypes.c_void_p).value)";
  const seen = async () => (await attacker.exec({ lang: "py", code: SEEN })).stdout.trim().split(" ");

  test("end when an interpreter is killed, at the latest; programs meanwhile notice nothing", async () => {
    const before = await seen();
    const old = zygotes();
    await besiege(async () => {
      const programs = Array.from({ length: 12 }, (_, n) =>
        attacker.exec({ lang: "py", code: `import time\ntime.sleep(${n / 10})\nprint(${n})` }),
      );
      for (const pid of old) killProcess(pid);
      const answers = await Promise.all(programs);
      expect(answers.map(({ stdout }) => stdout)).toEqual(answers.map((_, n) => `${n}\n`));
      if (WARM)
        await until(
          () => zygotes().length === KINDS.length && zygotes().every((pid) => !old.includes(pid)),
          REPLACED_MS,
        );
    });
    // Copies of the old interpreters that wait already have the old layout: one of each is used up at a time.
    const other = async () => {
      const now = await seen();
      return now.every((value, at) => value !== before[at]);
    };
    await until(other, REPLACED_MS);
  });
});
