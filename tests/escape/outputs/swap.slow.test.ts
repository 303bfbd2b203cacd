/**
 * A thousand collections in which somebody outside of the jail, as root, swaps files, links and folders of the workspace while they are
 * listed and read, with pauses between the steps of the collection: never a byte from outside, never a mode or an owner
 * changed outside. Without the restrictions under which jaild opens files the same attacker reads what is outside.
 */
import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JailRun } from "@svc/jail-client";
import { killProcess, until } from "@svc/test-kit/jail/host";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { bytesOf, stage } from "@svc/test-kit/jail/run";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROUNDS = 1000;
const DELAY_US = 300;
/** With less than this the attacker was not fast enough to prove anything. */
const HITS = 100;
const FETCHED = 40;
const SUPPORT = join(import.meta.dirname, "../support");
const JAIL = join(import.meta.dirname, "../../../jail");
let folder: string;
let swapper: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-swap-"));
  swapper = join(folder, "swapper");
  execFileSync("make", ["--silent", "-C", JAIL, "shared"]);
  execFileSync("cc", ["-O2", "-o", swapper, join(SUPPORT, "swapper.c")]);
  execFileSync("cc", [
    "-O2",
    "-shared",
    "-fPIC",
    "-o",
    join(folder, "slow.so"),
    join(SUPPORT, "slow-harvest.c"),
  ]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A jaild that pauses between the steps of a collection. */
function startSlow(weak: boolean): Promise<Jaild> {
  const binary = join(folder, weak ? "weak" : "slow");
  const settings = `LD_PRELOAD=${join(folder, "slow.so")} HARVEST_DELAY_US=${DELAY_US}${weak ? " HARVEST_WEAK=1" : ""}`;
  writeFileSync(binary, `#!/bin/sh\nexec env ${settings} ${join(JAIL, "build/jaild-shared")} "$@"\n`);
  chmodSync(binary, 0o755);
  return Jaild.start({ slots: 2, binary });
}

/** Everything in the root image, with modes, owners and times of change. */
const stateOfImage = () =>
  execFileSync("bash", ["-c", "find . -xdev -printf '%p %m %U %G %s %C@\\n' | sort | sha256sum"], {
    cwd: IMAGE,
  }).toString();

/** The workspace of a staged run, as the machine sees it: the open directory of a keeper that holds this input. */
function workspaceWith(input: string, jaild: Jaild): string | undefined {
  for (const keeper of jaild.keepers) {
    for (const fd of namesIn(`/proc/${keeper}/fd`)) {
      const path = `/proc/${keeper}/fd/${fd}/`;
      if (namesIn(path).includes(input)) return path;
    }
  }
  return undefined;
}

/** Empty for what is no directory, or gone. */
function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** A keeper has the image at /image. */
const SCRIPT = `ln -s /image/etc e; ln -s /image/etc e2; ln -s /image/etc/passwd l; mkfifo p; mkdir n n/deep
for name in passwd group hosts deep/f; do echo inside > n/$name; done 2> /dev/null; echo inside > g`;
const PAIRS = ["d", "e", "f", "l", "n", "e2", "g", "p", "g", "l", "n/passwd", "l", "d/passwd", "f"];

interface Round {
  /** Names and beginnings of files with bytes that no program wrote. */
  outside: string[];
  /** Files that were listed and then refused, and names that were no files when they were looked at. */
  refused: number;
}

async function attack(jaild: Jaild): Promise<Round> {
  const mark = `mark-${randomUUID()}`;
  // More than is held back before a start.
  const padding = "x".repeat(256 * 1024);
  const files = { padding, "d/passwd": "inside", "d/group": "inside", f: "inside", [mark]: "inside" };
  const run = await stage(jaild, { argv: ["/bin/bash", "-c", SCRIPT], files });
  let workspace: string | undefined;
  const isStaged = () => {
    workspace = workspaceWith(mark, jaild);
    return workspace !== undefined;
  };
  await until(isStaged, "the inputs are staged", 10_000);
  const attacker = spawn(swapper, [workspace ?? "", ...PAIRS], { stdio: "ignore" });
  const ended = new Promise((resolve) => attacker.once("exit", resolve));
  try {
    await run.start();
    const { listing } = await run.outcome();
    const round: Round = { outside: [], refused: listing.omitted.length + listing.missing.length };
    for (const { number, path } of listing.files.slice(0, FETCHED)) {
      const bytes = await fetched(run, number);
      if (bytes === undefined) round.refused++;
      else if (!/^(inside\n?|x+)?$/.test(bytes.toString()))
        round.outside.push(`${path}: ${bytes.subarray(0, 40)}`);
    }
    return round;
  } finally {
    killProcess(attacker.pid);
    await ended;
    run.close();
  }
}

/** Nothing when the file is refused, before its first byte or in the middle. */
const fetched = (run: JailRun, number: number) => bytesOf(run, number).catch(() => undefined);

test(`in ${ROUNDS} rounds no byte comes from outside, and nothing outside is changed`, async () => {
  const before = stateOfImage();
  const jaild = await startSlow(false);
  let refused = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const seen = await attack(jaild);
      expect(seen.outside).toEqual([]);
      refused += seen.refused;
    }
  } finally {
    await jaild.stop();
  }
  expect(refused).toBeGreaterThan(HITS);
  expect(stateOfImage()).toBe(before);
});

test("counterpart: the same attacker reads the machine's files when nothing restricts what is opened", async () => {
  const jaild = await startSlow(true);
  const outside: string[] = [];
  try {
    for (let round = 0; round < 100 && outside.length === 0; round++)
      outside.push(...(await attack(jaild)).outside);
  } finally {
    await jaild.stop();
  }
  expect(outside).not.toEqual([]);
});
