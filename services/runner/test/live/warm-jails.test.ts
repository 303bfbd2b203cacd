import { join } from "node:path";
import { loadConfig } from "@svc/service-kit";
import { killProcess, until } from "@svc/test-kit/jail/host";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { describePython, finishPython } from "@svc/test-kit/jail/warm";
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import type { Program } from "../../src/execution/program.ts";
import { Runtimes } from "../../src/execution/runtimes.ts";
import { WarmJails } from "../../src/warm/jails.ts";

/** One jail for each kind of the image that is kept. */
const SLOTS = 5;

let jaild: Jaild;
let jails: WarmJails;
afterEach(async () => {
  jails.close();
  await jaild.stop();
});

async function start(env: Record<string, string>, options: Parameters<typeof Jaild.start>[0] = {}) {
  jaild = await Jaild.start({ slots: SLOTS, zygotes: true, ...options });
  if (options.zygotes !== false) await jaild.warm();
  const config = loadConfig("runner", {
    SANDBOX_FORWARD_TARGET: "gateway:3190",
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "key",
    SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
    SANDBOX_JAIL_SOCKET: jaild.socket,
    ...env,
  });
  jails = new WarmJails(config, await Runtimes.load(config), {}, pino({ level: "silent" }));
  jails.start();
}

const waiting = () => jails.counts().map(({ waiting: count }) => count);
const full = () =>
  until(() => jails.counts().every(({ waiting: count, wanted }) => count === wanted), "they wait", 20_000);

const PYTHON = ["/usr/bin/python3", "main.py"];
const PRELUDE = ["/usr/bin/python3", "/usr/lib/svc/ptc/prelude.py", "main.py"];

const programOf = (source: string, argv = PYTHON): Program => ({
  argv,
  env: [],
  stdin: undefined,
  made: [],
  contents: [{ path: "main.py", bytes: Buffer.from(source) }],
  references: [],
  directories: [],
  plainDirectories: [],
  hasOwnEnvironment: false,
});

async function run(source: string) {
  const jail = await jails.open(programOf(source), new AbortController().signal);
  await describePython(jail, { files: { "main.py": source } });
  return finishPython(jail);
}

const LOADED =
  "import sys\nprint([name for name in ('_svc' + '_tools', 'sub' + 'process', 'pan' + 'das') if name in sys.modules])";

describe("the jail of a program", () => {
  it("is one that waits with what the program imports", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    expect(await run(LOADED)).toMatchObject({ out: "[]\n", startedWarm: true });
    const standard = "['_svc_tools', 'subprocess']\n";
    expect(await run(`${LOADED}\nimport asyncio`)).toMatchObject({ out: standard, startedWarm: true });
    const all = "['_svc_tools', 'subprocess', 'pandas']\n";
    expect(await run(`${LOADED}\nimport numpy`)).toMatchObject({ out: all, startedWarm: true });
  });

  it("of one that has tools is one that waits with the prelude", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    const taken = async (source: string, argv: string[]) => {
      await full();
      const jail = await jails.open(programOf(source, argv), new AbortController().signal);
      const from = jails.counts().filter(({ waiting: count, wanted }) => count < wanted);
      jail.close();
      return from.map(({ zygote }) => zygote);
    };
    expect(await taken("print(1)", PYTHON)).toEqual(["python"]);
    expect(await taken("print(1)", PRELUDE)).toEqual(["python-standard"]);
    expect(await taken("import numpy", PRELUDE)).toEqual(["python-data"]);
  });

  it("is made warm when none waits", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    const all = await Promise.all([1, 2, 3].map((n) => run(`print(${n})`)));
    expect(all.map(({ out, startedWarm }) => [out, startedWarm])).toEqual([
      ["1\n", true],
      ["2\n", true],
      ["3\n", true],
    ]);
  });

  it("is cold without zygotes, when they are dead, and when warm starts are off", async () => {
    await start({ SANDBOX_WARM_POOL: "1" }, { zygotes: false });
    expect(await run("print(1)")).toMatchObject({ out: "1\n", startedWarm: false });
    jails.close();
    await jaild.stop();
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    for (const pid of jaild.zygotes) killProcess(pid);
    for (let i = 0; i < 3; i++) expect(await run(`print(${i})`)).toMatchObject({ out: `${i}\n` });
    jails.close();
    await jaild.stop();
    await start({ SANDBOX_WARM_START: "off" });
    expect(jails.counts()).toEqual([]);
    expect(await run("print(1)")).toMatchObject({ out: "1\n", startedWarm: false });
  });

  it("is taken from those that wait when there is no other", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    // The pools have all that jaild has.
    expect(jails.waiting).toBe(SLOTS);
    const jail = await jails.open(programOf("", ["/bin/bash", "main.py"]), new AbortController().signal);
    expect(waiting()).toContain(0);
    jail.close();
    await full();
  });

  it("ends with its own signal, and no longer with the pool", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    const life = new AbortController();
    const jail = await jails.open(programOf(""), life.signal);
    const gone = new Promise<void>((resolve) => jail.onGone(resolve));
    life.abort(new Error("the caller left"));
    await gone;
    await full();
    const other = await jails.open(programOf(""), new AbortController().signal);
    jails.close();
    await describePython(other, { files: { "main.py": "print(1)" } });
    expect(await finishPython(other)).toMatchObject({ out: "1\n", startedWarm: true });
  });
});
