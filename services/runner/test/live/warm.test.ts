import { descendants, isAlive, killProcess, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash } from "@svc/test-kit/jail/run";
import { describePython, finishPython } from "@svc/test-kit/jail/warm";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WarmPool, type WarmPoolOptions } from "../../src/warm/pool.ts";

let jaild: Jaild;
let pool: WarmPool;

interface Options extends Partial<Pick<WarmPoolOptions, "refillMs" | "maxAgeMs" | "mayGrow" | "quietMs">> {
  size?: number;
}

function start({ size = 2, ...options }: Options) {
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  pool = new WarmPool({
    socket: jaild.socket,
    fill: (jail) => jail.warm("python"),
    least: size,
    mayGrow: () => false,
    refillMs: 0,
    maxAgeMs: 600_000,
    onFailure,
    ...options,
  });
  pool.start();
  return failures;
}

const full = (size: number) => until(() => pool.waiting === size, "the pool is full", 20_000);
const run = async (source: string) => {
  const jail = pool.take();
  if (jail === undefined) throw new Error("nothing waits");
  await describePython(jail, { files: { "main.py": source } });
  return finishPython(jail);
};

const onlyEmptyJails = () =>
  until(() => jaild.keepers.every((pid) => descendants(pid).length < 2), "only empty jails are left");

describe("jails that wait warm", () => {
  beforeAll(async () => {
    jaild = await Jaild.start({ slots: 4, zygotes: true });
    await jaild.warm();
  });
  afterEach(async () => {
    pool.close();
    await onlyEmptyJails();
  });
  afterAll(() => jaild.stop());

  it("are as many as wanted, and again after each that is taken", async () => {
    start({});
    await full(2);
    for (let i = 0; i < 3; i++) {
      expect(await run(`print(${i})`)).toMatchObject({ out: `${i}\n`, startedWarm: true });
      await full(2);
    }
  });

  it("are none when they are all taken: nobody waits for one", async () => {
    start({ size: 1 });
    await full(1);
    const first = pool.take();
    expect(pool.take()).toBeUndefined();
    first?.close();
  });

  it("that die are replaced", async () => {
    start({ size: 1 });
    await full(1);
    const keeper = jaild.keepers.find((pid) => descendants(pid).length === 2);
    const [, program = 0] = descendants(keeper);
    killProcess(program);
    await until(() => pool.waiting === 0, "the pool knows");
    await full(1);
    expect(await run("print(1)")).toMatchObject({ out: "1\n" });
  });

  it("are all replaced when they have waited too long, one after the other, and are given to nobody then", async () => {
    start({ size: 3, maxAgeMs: 2000 });
    await full(3);
    const first = jaild.keepers.filter((pid) => descendants(pid).length === 2);
    let least = first.length;
    await until(() => {
      least = Math.min(least, pool.waiting);
      return first.every((pid) => !isAlive(pid));
    }, "the old ones are gone");
    expect(first).toHaveLength(3);
    expect(least).toBeGreaterThanOrEqual(2);
    await full(3);
    // No new ones can be made.
    for (const pid of jaild.zygotes) process.kill(pid, "SIGSTOP");
    try {
      await until(() => pool.waiting === 2, "one is being replaced", 20_000);
      const began = performance.now();
      await until(() => performance.now() - began > 2000, "the others are too old", 20_000);
      expect([pool.take(), pool.waiting]).toEqual([undefined, 0]);
    } finally {
      for (const pid of jaild.zygotes) process.kill(pid, "SIGCONT");
    }
  });

  it("become more when requests find none left, as far as they may, and the least again when nothing comes", async () => {
    start({ size: 0, mayGrow: () => pool.wanted < 2, refillMs: 1, quietMs: 2000 });
    expect([pool.take(), pool.wanted]).toEqual([undefined, 1]);
    await full(1);
    expect(await run("print(1)")).toMatchObject({ out: "1\n", startedWarm: true });
    expect(pool.wanted).toBe(2);
    await full(2);
    for (const jail of [pool.take(), pool.take(), pool.take()]) jail?.close();
    expect(pool.wanted).toBe(2);
    await until(() => pool.wanted === 0 && pool.waiting === 0, "it is quiet", 20_000);
    await onlyEmptyJails();
  });

  it("are gone when the pool is closed", async () => {
    start({});
    await full(2);
    pool.close();
    await onlyEmptyJails();
  });
});

describe("jails that wait warm, of a single slot", () => {
  afterEach(async () => {
    pool.close();
    await jaild.stop();
  });

  it("take no jail away when there is no zygote", async () => {
    jaild = await Jaild.start({ slots: 1, zygotes: false });
    const failures = start({});
    for (let i = 0; i < 5; i++) expect((await bash(jaild, "echo next")).out).toBe("next\n");
    expect(pool.waiting).toBe(0);
    expect(failures).toEqual([]);
  });

  it("give way to a request that finds none", async () => {
    jaild = await Jaild.start({ slots: 1, zygotes: true });
    await jaild.warm();
    start({ size: 1 });
    await full(1);
    const cold = bash(jaild, "echo cold");
    pool.giveWay();
    expect((await cold).out).toBe("cold\n");
    await full(1);
  });
});
