import { join } from "node:path";
import { loadConfig } from "@svc/service-kit";
import pino from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { killProcess, until } from "../../../../packages/jail-client/test/support/host.ts";
import { IMAGE, Jaild } from "../../../../packages/jail-client/test/support/jaild.ts";
import { describePython, finishPython } from "../../../../packages/jail-client/test/support/warm.ts";
import type { Program } from "../../src/program.ts";
import { Runtimes } from "../../src/runtimes.ts";
import { WarmJails } from "../../src/warm/jails.ts";

let jaild: Jaild;
let jails: WarmJails;
afterEach(async () => {
  jails.close();
  await jaild.stop();
});

async function start(env: Record<string, string>, options: Parameters<typeof Jaild.start>[0] = {}) {
  jaild = await Jaild.start({ slots: 4, zygotes: true, ...options });
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

const programOf = (source: string, command = "/usr/bin/python3"): Program => ({
  argv: [command, "main.py"],
  env: [],
  stdin: undefined,
  made: [],
  contents: [{ path: "main.py", bytes: Buffer.from(source) }],
  references: [],
  directories: [],
});

async function run(source: string, signal = new AbortController().signal) {
  const jail = await jails.open(programOf(source), signal);
  await describePython(jail, { files: { "main.py": source } });
  return finishPython(jail);
}

const IMPORTS = "import sys\nprint('pan' + 'das' in sys.modules)";

describe("the jail of a program", () => {
  it("is one that waits with what the program imports", async () => {
    await start({ SANDBOX_WARM_POOL: "1" });
    await full();
    expect(await run(IMPORTS)).toMatchObject({ out: "False\n", startedWarm: true });
    await full();
    expect(await run(`${IMPORTS}\nimport numpy`)).toMatchObject({ out: "True\n", startedWarm: true });
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
    await start({ SANDBOX_WARM_POOL: "1" }, { slots: 3 });
    await full();
    const jail = await jails.open(programOf("", "/bin/bash"), new AbortController().signal);
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
