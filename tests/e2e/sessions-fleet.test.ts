/** Persistent sessions on two machines: a session goes on wherever its next run is, and differing settings do what docs/sessions.md says. */
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { STOP } from "@svc/test-kit/system/stopped-programs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { concurrentRounds } from "./support/concurrent-rounds.ts";
import { FLEET_ENV, Fleet } from "./support/fleet.ts";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start();
});
afterAll(async () => {
  expect(await fleet?.stop()).toEqual([]);
});

const KEPT = { session_state_persisted: true, session_state_restore_failed: false };
const NOT_KEPT = { session_state_persisted: false, session_state_restore_failed: false };
const NOT_RESTORED = { session_state_persisted: false, session_state_restore_failed: true };

let made = 0;
/** A session of its own whose runs a test places. */
function session() {
  const runtime_session_hint = `fleet-${++made}`;
  return (machine: number, lang: string, code: string, more: ExecInput = {}) =>
    fleet.execOn(machine, { lang, code, runtime_session_hint, ...more });
}

/** The machines take turns: each step is on the other machine than the one before, and must be kept. */
async function notebook(steps: readonly (readonly [lang: string, code: string, stdout: string])[]) {
  expect(steps).toHaveLength(10);
  const run = session();
  for (const [at, [lang, code, stdout]] of steps.entries()) {
    const answer = await run(at % 2, lang, code);
    expect(answer, `step ${at + 1}`).toMatchObject({ code: 0, stdout, stderr: "", ...KEPT });
    expect(answer).not.toHaveProperty("session_state_conflict");
  }
}

describe("a notebook of ten steps, each on the other machine than the one before", () => {
  test("in Python keeps variables, imports, functions, classes, figures and files, and what is deleted stays away", () =>
    notebook([
      ["py", "import numpy as np, math\nfrom dataclasses import dataclass\nrate = 2", ""],
      ["py", "def scaled(x): return x * rate\ntwice = lambda x: 2 * x\nprint(math.pi > rate)", "True\n"],
      [
        "py",
        "@dataclass\nclass Point:\n    x: int\n    y: int = 0\np = Point(scaled(2))\nprint(p)",
        "Point(x=4, y=0)\n",
      ],
      [
        "py",
        "import pandas as pd\nframe = pd.DataFrame({'a': np.arange(4)})\nopen('helper.py', 'w').write('def h(): return 7')",
        "",
      ],
      [
        "py",
        "from helper import h\nrate = 10\nprint(scaled(4), twice(p.x), isinstance(p, Point), h())",
        "40 8 True 7\n",
      ],
      [
        "py",
        "frame['c'] = frame.a ** 2\nprint(frame.c.sum())\nshared = other = []\nopen('notes', 'w').write('one')",
        "14\n",
      ],
      [
        "py",
        "import os\nshared.append(1)\nos.rename('notes', 'kept')\ndel twice\nprint(other, h())",
        "[1] 7\n",
      ],
      [
        "py",
        "print(sorted(os.listdir('.')), 'twice' in globals(), shared is other)\nos.remove('helper.py')\ndel h",
        "['.session_state.last', 'helper.py', 'kept', 'main.py'] False True\n",
      ],
      [
        "py",
        "import matplotlib.pyplot as plt\nplt.plot(frame.a)\nplt.title('kept')\nprint(os.path.exists('helper.py'))",
        "False\n",
      ],
      [
        "py",
        "print(plt.gca().get_title(), len(plt.gca().lines), Point(1, 2), open('kept').read(), frame.shape)",
        "kept 1 Point(x=1, y=2) one (4, 2)\n",
      ],
    ]));

  test("in Bash keeps files, folders, modes, links and hidden files, and what is renamed and deleted", () =>
    notebook([
      ["bash", "mkdir -p src/.hidden empty; echo one > src/a; echo two > src/.hidden/b", ""],
      [
        "bash",
        "cat src/a src/.hidden/b; chmod 700 src/a; ln -s ../src/a empty/link; ln -s /etc/passwd outside",
        "one\ntwo\n",
      ],
      [
        "bash",
        "find . -mindepth 1 ! -name script.sh -printf '%m %y %p %l\\n' | sort -k3",
        "755 d ./empty \n777 l ./empty/link ../src/a\n755 d ./src \n755 d ./src/.hidden \n644 f ./src/.hidden/b \n700 f ./src/a \n",
      ],
      ["bash", "cat empty/link; mv src/a 'src/new name'", "one\n"],
      [
        "bash",
        "ls src; test -e empty/link || echo dangling; rm -r empty; mv src lib",
        "new name\ndangling\n",
      ],
      ["bash", "ls -d */; echo three >> 'lib/new name'", "lib/\n"],
      ["bash", "cat lib/*; mkdir closed; echo x > closed/f; chmod 500 closed", "one\nthree\n"],
      [
        "bash",
        "stat -c %a closed; cat closed/f; touch closed/g 2>/dev/null || echo refused",
        "500\nx\nrefused\n",
      ],
      ["bash", "chmod 700 closed; rm -rf -- closed lib; ls -A", "script.sh\n"],
      ["bash", "find . -mindepth 1 ! -name script.sh", ""],
    ]));

  test("in JavaScript keeps files and modules, and what is renamed and deleted", () =>
    notebook([
      ["js", "require('fs').writeFileSync('state.json', JSON.stringify({ n: 0 }))", ""],
      [
        "js",
        "require('fs').writeFileSync('count.js', `const fs = require('fs'); module.exports = () => { const s = JSON.parse(fs.readFileSync('state.json')); s.n++; fs.writeFileSync('state.json', JSON.stringify(s)); return s.n; }`)",
        "",
      ],
      ["js", "console.log(require('./count.js')())", "1\n"],
      ["js", "console.log(require('./count.js')()); require('fs').mkdirSync('lib')", "2\n"],
      ["js", "require('fs').renameSync('count.js', 'lib/count.js')", ""],
      ["js", "console.log(require('./lib/count.js')(), require('fs').existsSync('count.js'))", "3 false\n"],
      [
        "ts",
        "import { readFileSync } from 'node:fs'; console.log(JSON.parse(readFileSync('state.json', 'utf8')).n as number)",
        "3\n",
      ],
      ["js", "require('fs').rmSync('lib', { recursive: true })", ""],
      ["js", "console.log(require('fs').readdirSync('.').sort().join())", "index.js,state.json\n"],
      ["js", "console.log(require('fs').readFileSync('state.json', 'utf8'))", '{"n":3}\n'],
    ]));

  test("in several languages shares files, and Python finds its variables behind runs of the others", () =>
    notebook([
      ["bash", "printf 'a,b\\n1,2\\n' > data.csv", ""],
      [
        "py",
        "import csv\nrows = list(csv.reader(open('data.csv')))\nprint(rows)",
        "[['a', 'b'], ['1', '2']]\n",
      ],
      ["js", "require('fs').appendFileSync('data.csv', '3,4\\n')", ""],
      ["bash", "wc -l < data.csv; ls", "3\ndata.csv\nscript.sh\n"],
      [
        "py",
        "print(len(rows), sum(1 for _ in csv.reader(open('data.csv'))))\nopen('total', 'w').write('10')",
        "2 3\n",
      ],
      ["bash", "cat total; mkdir out; mv total out/sum; chmod 600 out/sum", "10"],
      [
        "ts",
        "import { readFileSync, rmSync } from 'node:fs'; rmSync('data.csv'); console.log(readFileSync('out/sum', 'utf8'))",
        "10\n",
      ],
      [
        "py",
        "import os\nprint(os.path.exists('data.csv'), oct(os.stat('out/sum').st_mode), rows[1])\nrows = None",
        "False 0o100600 ['1', '2']\n",
      ],
      ["bash", "rm -r out; echo done > end", ""],
      ["py", "print(rows, os.listdir('.').count('out'), open('end').read().strip())", "None 0 done\n"],
    ]));
});

/** What a worker has counted: runs by outcome, and the number and the sum of the sizes. */
async function counted(machine: number): Promise<Record<string, number>> {
  const text = await fleet.workerMetrics(machine);
  const outcomes = text.matchAll(/^svc_session_state_total\{outcome="(\w+)"\} (\d+)$/gm);
  const sizes = text.matchAll(/^svc_session_state_(bytes_count|bytes_sum) (\d+)$/gm);
  return Object.fromEntries([...outcomes, ...sizes].map(([, name, value]) => [name, Number(value)]));
}

/** What a worker counted meanwhile. */
async function countedSince(machine: number, before: Record<string, number>) {
  const after = Object.entries(await counted(machine));
  return Object.fromEntries(after.map(([name, value]) => [name, value - (before[name] ?? Number.NaN)]));
}

interface Listed {
  sessions: { id: string; hint?: string; size: number }[];
}
async function listed(hint: string) {
  const { sessions } = (await fleet.api.send("GET", "/sessions")).ok<Listed>();
  return sessions.find((candidate) => candidate.hint === hint);
}

describe("runs of one session at the same time, two on each machine", () => {
  test("leave the state of one of them, which is told so; the next round begins with it, and the workers count it", async () => {
    const before = await Promise.all([counted(0), counted(1)]);
    const told = await concurrentRounds(fleet, 12);
    const [first, second] = await Promise.all(before.map((counts, machine) => countedSince(machine, counts)));
    const sum = (name: string) => Number(first?.[name]) + Number(second?.[name]);
    expect({ saved: sum("saved"), conflicts: sum("conflict") }).toEqual(told);
    expect(sum("bytes_count")).toBe(told.saved);
    expect(["unchanged", "restore_failed", "not_saved"].map(sum)).toEqual([0, 0, 0]);
  });
});

describe("what the worker counts", () => {
  test("is what the answers say, and the size that the list of sessions tells", async () => {
    const run = session();
    const hint = `fleet-${made}`;
    const before = await counted(1);
    expect(await run(1, "bash", "head -c 5000 /dev/urandom > f")).toMatchObject(KEPT);
    expect(await run(1, "bash", "cat f > /dev/null")).toMatchObject(KEPT);
    expect(await run(1, "bash", "echo 2 > f; sleep 60", { run_timeout: 200 })).toMatchObject(NOT_KEPT);
    expect(await countedSince(1, before)).toEqual({
      saved: 1,
      unchanged: 1,
      conflict: 0,
      restore_failed: 0,
      not_saved: 1,
      bytes_count: 1,
      bytes_sum: (await listed(hint))?.size,
    });
  });

  test("a run whose session was deleted meanwhile is not saved", async () => {
    const run = session();
    const hint = `fleet-${made}`;
    await run(1, "bash", "echo 1 > f");
    const before = await counted(1);
    await fleet.turnTo(1);
    const going = fleet.api.exec({
      lang: "bash",
      code: `echo 2 > f; ${STOP.bash}`,
      runtime_session_hint: hint,
    });
    const pids = await fleet.stoppedOn(1);
    expect((await fleet.api.send("DELETE", `/sessions/${(await listed(hint))?.id}`)).status).toBe(204);
    for (const pid of pids) process.kill(pid, "SIGCONT");
    const answer = await going;
    expect(answer).toMatchObject({ code: 0, ...NOT_KEPT });
    expect(answer).not.toHaveProperty("session_state_conflict");
    expect(await countedSince(1, before)).toMatchObject({ not_saved: 1, saved: 0, conflict: 0 });
    expect((await run(0, "bash", "ls -A")).stdout).toBe("script.sh\n");
  });
});

const LOOK = "import os\nprint(os.listdir('.'), 'x' in globals())\nopen('f', 'w').write('2')\nx = 2";
const NOTHING = "['main.py'] False\n";
const BEGAN_EMPTY = "[sandbox] The previous session could not be restored; this run started empty\n";

/** A session with a state, made on the machine on which all is on; `holds` tells that the state is the same. */
async function sessionWithState() {
  const run = session();
  expect(await run(0, "py", "x = 1\nopen('f', 'w').write('1')")).toMatchObject(KEPT);
  const holds = async () =>
    expect(await run(0, "py", "print(x, open('f').read())")).toMatchObject({ stdout: "1 1\n", ...KEPT });
  return { run, holds };
}

describe("sessions that are on at the API and off at a worker", () => {
  beforeAll(async () => {
    expect(await fleet.replaceSecond({ worker: { SVC_PERSIST_SESSIONS: "false" } })).toEqual([]);
  });

  test("begin there with nothing, leave nothing, and say so; the state stays", async () => {
    const { run, holds } = await sessionWithState();
    const answer = await run(1, "py", LOOK);
    expect(answer).toMatchObject({ code: 0, stdout: NOTHING, stderr: BEGAN_EMPTY, ...NOT_RESTORED });
    expect(answer.files).toMatchObject([{ name: "f" }]);
    expect(await run(1, "bash", "ls -A; echo 2 > f")).toMatchObject({
      stdout: "script.sh\n",
      ...NOT_RESTORED,
    });
    await holds();
  });

  test("are not made there, and the worker has no metrics of them", async () => {
    const run = session();
    expect(await run(1, "bash", "echo 1 > f")).toMatchObject(NOT_RESTORED);
    expect(await listed(`fleet-${made}`)).toBeUndefined();
    expect(await run(0, "bash", "ls -A")).toMatchObject({ stdout: "script.sh\n", ...KEPT });
    expect(await fleet.workerMetrics(1)).not.toContain("svc_session_state");
  });
});

describe("sessions that are off at a runner alone", () => {
  beforeAll(async () => {
    expect(await fleet.replaceSecond({ runner: { SVC_PERSIST_SESSIONS: "false" } })).toEqual([]);
  });

  test("begin there with nothing where there is a state, say so, and keep it, however often", async () => {
    const { run, holds } = await sessionWithState();
    const before = await counted(1);
    for (let times = 0; times < 4; times++)
      expect(await run(1, "py", LOOK)).toMatchObject({
        code: 0,
        stdout: NOTHING,
        stderr: BEGAN_EMPTY,
        ...NOT_RESTORED,
      });
    expect(await countedSince(1, before)).toMatchObject({ restore_failed: 4, saved: 0, not_saved: 0 });
    await holds();
  });

  test("are not saved there where there is no state", async () => {
    const run = session();
    for (let times = 0; times < 2; times++)
      expect(await run(1, "py", LOOK)).toMatchObject({ code: 0, stdout: NOTHING, stderr: "", ...NOT_KEPT });
    expect(await run(0, "py", LOOK)).toMatchObject({ stdout: NOTHING, ...KEPT });
  });
});

describe("sessions that are off at an API alone", () => {
  test("are none there, and those that there are stay", async () => {
    const { holds } = await sessionWithState();
    const runtime_session_hint = `fleet-${made}`;
    const off = await startSecondApi(fleet.system, { ...FLEET_ENV, SVC_PERSIST_SESSIONS: "false" });
    try {
      const api = new Api(off.url);
      const answer = await api.exec({ lang: "py", code: LOOK, runtime_session_hint });
      expect(answer.stdout).toBe(NOTHING);
      expect(Object.keys(answer).filter((name) => name.startsWith("session_state"))).toEqual([]);
      expect((await api.send("GET", "/sessions")).refusal.error).toBe("not_found");
    } finally {
      expect(await off.stop()).toBe(0);
    }
    await holds();
  });
});
