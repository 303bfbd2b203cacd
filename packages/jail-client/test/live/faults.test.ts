/**
 * Every call of the C library that makes a jail is made to fail in turn. Whatever fails: either there is no run, or the
 * run is confined like any other. The tests know no list of calls: they go on until a process made no more.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { buildFaulty, FAULTY, Faults, JAIL, STEPS } from "@svc/test-kit/jail/faults";
import { groupFile, until } from "@svc/test-kit/jail/host";
import { BINARY, IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { bytesOf, runJob, stageIn } from "@svc/test-kit/jail/run";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { JailError, JailRun, type RunOutcome } from "../../src/index.ts";
import { confinedJob, confinementIn } from "../support/confinement.ts";

const MEMORY_MIB = 128;

let jaild: Jaild | undefined;
let faults: Faults | undefined;
let confinement = "";

interface Attempt {
  error: unknown;
  outcome: RunOutcome | undefined;
  /** What the program left in a file. */
  made: string | undefined;
  limits: { processes: number; memoryMib: number };
}

/** One run, from connecting to the fetch of a file. */
async function attempt(at: Jaild, count: number): Promise<Attempt> {
  const limits = { processes: 100 + (count % 100), memoryMib: MEMORY_MIB + (count % 64) };
  const done: Attempt = { error: undefined, outcome: undefined, made: undefined, limits };
  let run: JailRun | undefined;
  try {
    run = await JailRun.open(at.socket, AbortSignal.timeout(30_000));
    await stageIn(run, confinedJob(limits.processes, limits.memoryMib));
    await run.start();
    const outcome = await run.outcome();
    const file = outcome.listing.files.find(({ path }) => path.toString() === "made/out.txt");
    done.made = file === undefined ? undefined : (await bytesOf(run, file.number))?.toString();
    done.outcome = outcome;
  } catch (error) {
    done.error = error;
  }
  run?.close();
  return done;
}

/** An outcome that a client got comes from a whole, confined run. */
function expectWhole(done: Attempt, at: Jaild): void {
  const { outcome, limits } = done;
  if (outcome === undefined) throw new Error("no outcome", { cause: done.error });
  expect(outcome.stderr.toString()).toBe("");
  expect(outcome.end).toMatchObject({ cause: "exited", exitCode: 0 });
  expect(confinementIn(outcome.stdout.toString(), limits.processes, limits.memoryMib)).toBe(confinement);
  expect(Number(groupFile(at.group, "pids.max"))).toBe(limits.processes + 1);
  const { files, emptyDirectories, directories, symlinks, kept, missing, unlisted } = outcome.listing;
  const listed = files.map(({ path, state }) => [path.toString(), state]);
  const all = [
    ["fixed.txt", "unchanged"],
    ["in.txt", "unchanged"],
    ["made/out.txt", "new"],
  ];
  // What the jail could not look at is counted, and never taken for what is not there.
  if (unlisted > 0) return;
  expect({ listed, kept, missing, empty: emptyDirectories.map(String) }).toEqual({
    listed: all,
    kept: [2],
    missing: [],
    empty: ["empty"],
  });
  expect(directories.map(({ path, mode }) => [path.toString(), mode])).toEqual([
    ["empty", 0o755],
    ["made", 0o755],
  ]);
  expect(symlinks.map(({ path, target }) => [path.toString(), target.toString()])).toEqual([
    ["link", "in.txt"],
  ]);
  expect([undefined, "hello\n"]).toContain(done.made);
}

/** What init calls when it has forked the program: nobody knows then how far that came. */
const AFTER_FORK = ["syscall", "wait4", "write"];

/** A refusal says nothing of the host and tells whether the program may have run. */
function expectRefusal(error: unknown, mayHaveRun: boolean): void {
  expect(error).toBeInstanceOf(JailError);
  const { message, started, kind } = error as JailError;
  expect(message).not.toContain(IMAGE);
  expect(message).not.toMatch(/\/(proc|sys|tmp|run|dev|mnt)\b|slot-|\d{4,}/);
  expect(["setup", "internal", "gone"]).toContain(kind);
  if (!mayHaveRun) expect(started).toBe(false);
}

const stepsIn = (file: string) => {
  const source = readFileSync(join(JAIL, "src", file), "utf8");
  const names = [...source.matchAll(/MUST\([\w>-]+, ([A-Z_]+),|, STEP_([A-Z_]+)\)/g)].map(
    ([, must, other]) => must ?? other,
  );
  return [...new Set(names)].map((name) => {
    const text = STEPS.get(name ?? "");
    if (text === undefined) throw new Error(`no such step: ${name}`);
    return text;
  });
};

/** An init that cannot receive a job dies before one is sent. */
const INIT_STEPS = [...stepsIn("init/init.c"), ...stepsIn("init/confine.c")].filter(
  (text) => text !== STEPS.get("JOB"),
);

async function expectNothingLeft(of: Jaild): Promise<void> {
  await until(() => of.groups.length === 0, "its control groups are gone");
  expect([of.socketExists, existsSync(of.tools)]).toEqual([false, false]);
}

/** What a jaild could not remove. */
function removeGroups(of: Jaild): void {
  for (const group of of.groups) {
    for (const slot of readdirSync(group, { withFileTypes: true }))
      if (slot.isDirectory()) rmdirSync(join(group, slot.name));
    rmdirSync(group);
  }
}

beforeAll(async () => {
  buildFaulty();
  const plain = await Jaild.start({ slots: 1 });
  const { outcome, error, limits } = await attempt(plain, 0);
  await plain.stop();
  if (outcome === undefined) throw error;
  confinement = confinementIn(outcome.stdout.toString(), limits.processes, limits.memoryMib);
}, 120_000);

afterEach(async () => {
  await jaild?.stop();
  faults?.remove();
  jaild = faults = undefined;
});

describe("a call that fails", () => {
  it.each([
    ["keeper", "EPERM", []],
    ["keeper", "EIO", []],
    ["init", "EPERM", INIT_STEPS],
    ["init", "ENOMEM", INIT_STEPS],
    ["program", "EPERM", stepsIn("init/program.c")],
    ["program", "EIO", stepsIn("init/program.c")],
  ] as const)(
    "in the %s with %s: no run, or a confined one",
    async (role, error, steps) => {
      faults = Faults.plan({ role, step: 1, error });
      jaild = await faults.start();
      const plan = faults;
      const told: string[] = [];
      const problems: string[] = [];
      let seen = 0;
      for (let count = 0, more = true; more; count++) {
        const done = await attempt(jaild, count);
        // The jails that no client met, up to the one that this client met.
        const met = () => {
          let number = seen;
          while (number < plan.taken && !plan.ticket(number).met) number++;
          return number;
        };
        await until(() => plan.taken > met() + 1, "the slot is there for the next run", 30_000);
        const number = met();
        for (; seen < number; seen++)
          expect({ seen, ...plan.ticket(seen) }).toMatchObject({ seen, fired: true, executed: false });
        seen++;
        try {
          const { fired, executed, name } = plan.ticket(number);
          const mayHaveRun = executed || (role === "init" && AFTER_FORK.includes(name));
          more = fired;
          // A program that the kernel will not execute is reported to the caller, and has not run either.
          if (done.outcome?.end.execErrno) expect(executed).toBe(false);
          else if (done.error === undefined) expectWhole(done, jaild);
          else expectRefusal(done.error, mayHaveRun);
          if (!fired) expect(done.error).toBeUndefined();
        } catch (problem) {
          problems.push(`call ${seen}, ${plan.ticket(number).name}, fails: ${problem}`);
        }
        if (done.error instanceof JailError) told.push(done.error.message);
      }
      expect(problems).toEqual([]);
      const all = jaild.log + told.join("\n");
      for (const step of steps) expect(all, step).toContain(step);
      await jaild.kill("SIGTERM");
      await expectNothingLeft(jaild);
    },
    300_000,
  );
});

describe("a call of the start that fails", () => {
  it.each([
    // How often the master reads an entry of /proc depends on what else the machine does.
    ["template", ""],
    ["master", "!readdir64"],
    ["master", "readdir64"],
  ] as const)(
    "in the %s (%s): no jaild that takes jobs, or a whole one",
    async (role, only) => {
      const problems: string[] = [];
      let refused = 0;
      for (let count = 0, more = true; more; count = only === "readdir64" ? 2 * count + 1 : count + 1) {
        faults = Faults.plan({ role, only, first: count + 1, tickets: 1 });
        jaild = Jaild.launch({ slots: 1, ...faults.options });
        try {
          await jaild.ready().catch(() => undefined);
          const at = jaild;
          const done = at.ended ? undefined : await attempt(at, count);
          // It may end after it began to listen.
          if (done?.error !== undefined) await until(() => at.ended, `jaild ends: ${done.error}`);
          if (at.ended) expect([1, 2]).toContain(at.exitCode);
          else if (done !== undefined) expectWhole(done, at);
          if (at.ended) refused++;
          await jaild.kill("SIGTERM");
          // What cannot be removed, because that was the call, is said.
          if (!/cannot be removed|cannot be killed/.test(jaild.log)) await expectNothingLeft(jaild);
        } catch (problem) {
          const cause = problem instanceof Error ? problem.cause : undefined;
          problems.push(`call ${count + 1}, ${faults.ticket(0).name}: ${problem} ${cause} ${jaild.log}`);
        }
        more = faults.ticket(0).fired;
        await jaild.stop();
        removeGroups(jaild);
        faults.remove();
        faults = undefined;
      }
      expect(problems).toEqual([]);
      expect(refused).toBeGreaterThan(3);
    },
    300_000,
  );
});

describe("the groups of a slot that must be made anew", () => {
  /** Leaves names that do not exist in the kernel's memory, charged to the slot's group; other ones each time. */
  const forgetful =
    "import os, uuid\nname = 4 * uuid.uuid4().hex\nfor i in range(50000): os.path.exists(f'/usr/lib/{name}{i}')";
  const run = (of: Jaild, program: string) => runJob(of, { argv: ["/usr/bin/python3", "-c", program] });
  /** The number of the last call with which the groups are made anew. */
  const lastCall = async (only: string) => {
    const plan = Faults.plan({ role: "master", only, first: 1_000_000, tickets: 1 });
    const counted = await plan.start();
    const { calls } = plan.ticket(0);
    await run(counted, forgetful);
    await until(() => plan.ticket(0).calls > calls, "the groups are made anew");
    await counted.full();
    const last = plan.ticket(0).calls;
    await counted.stop();
    plan.remove();
    return last;
  };

  it.each(["mkdir", "chown"])("are made later where a %s fails, and jaild goes on", async (only) => {
    const plan = Faults.plan({ role: "master", only, first: await lastCall(only), tickets: 1 });
    faults = plan;
    jaild = await plan.start();
    await run(jaild, forgetful);
    await until(() => plan.ticket(0).fired, "the call has failed");
    expect((await run(jaild, "print(1)")).out).toBe("1\n");
    expect(jaild.ended).toBe(false);
  });
});

describe("fault injection", () => {
  const symbols = (files: readonly string[], flag: string) =>
    execFileSync("nm", ["--no-demangle", flag, ...files], { encoding: "utf8" })
      .split("\n")
      .filter((line) => !line.endsWith(":"))
      .map((line) => line.trim().split(" ").at(-1) ?? "")
      .filter((name) => name !== "");
  /** What jaild is linked from: it holds the C library too. */
  const objects = readdirSync(join(JAIL, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".c"))
    .map((name) => join(JAIL, "build", name.replace(/c$/, "o")));

  it("knows every function that jaild calls", () => {
    const known = readFileSync(join(JAIL, "faults/calls.def"), "utf8").matchAll(/^[A-Z_]+\((\w+)\)$/gm);
    const names = new Set([...known].map(([, name]) => name));
    const data = new Set(["stderr", "stdout", "optarg", "optind"]);
    const own = new Set(symbols(objects, "--defined-only"));
    const called = symbols(objects, "--undefined-only").filter((name) => !own.has(name) && !data.has(name));
    expect(called.length).toBeGreaterThan(100);
    expect(called.filter((name) => !names.has(name))).toEqual([]);
  });

  it("is in no jaild that people run", () => {
    expect(symbols([BINARY], "--defined-only").filter((name) => name.startsWith("__wrap_"))).toEqual([]);
    expect(readFileSync(BINARY, "latin1")).not.toContain("SVC_FAULTS");
    expect(readFileSync(FAULTY, "latin1")).toContain("SVC_FAULTS");
  });
});
