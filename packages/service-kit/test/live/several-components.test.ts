/** Several components in one process: each has its own configuration and log, and they end together, in order. */
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";
import { NAMES } from "../support/several-components.ts";

const MAIN = join(import.meta.dirname, "../support/several-components.ts");
const { privateKey } = generateKeyPairSync("ed25519");

interface Line {
  name: string;
  msg: string;
  level: number;
  time: number | string;
  [field: string]: unknown;
}

/** `whenRunning` is called once all say that they run. */
async function run(
  args: readonly string[],
  env: Record<string, string>,
  whenRunning: (pid: number) => void = () => undefined,
) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: {
      PATH: process.env.PATH ?? "",
      SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
      SVC_CONTINUATION_SECRET: newSecret(),
      SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey
        .export({ type: "pkcs8", format: "der" })
        .toString("base64"),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stderr = text(child.stderr);
  const lines: Line[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line));
    const running = lines.filter(({ msg }) => msg === "running").length;
    if (running === NAMES.length && lines.at(-1)?.msg === "running") whenRunning(child.pid ?? 0);
  });
  const [code] = await once(child, "close");
  return { code, lines, stderr: await stderr };
}

/** Each begins when the one before it has ended. Logs of their own share a pipe, so that times count and not places. */
function expectStoppedInOrder(lines: readonly Line[]): void {
  const timesOf = (msg: string) =>
    NAMES.map((name) =>
      Number(new Date(lines.find((line) => line.name === name && line.msg === msg)?.time ?? 0)),
    );
  const [began, stopped] = [timesOf("stop began"), timesOf("stopped")];
  for (const [at, time] of began.entries()) {
    expect(time).toBeGreaterThan(0);
    expect(time).toBeGreaterThanOrEqual(stopped[at - 1] ?? 0);
  }
}

const namesOf = (lines: readonly Line[], msg: string) =>
  lines.filter((line) => line.msg === msg).map(({ name }) => name);

it("each is given its own secrets only, and SIGTERM stops them in the order of their list", async () => {
  const { code, lines } = await run([], {}, (pid) => process.kill(pid, "SIGTERM"));
  expect(code).toBe(0);
  const given = lines.filter(({ msg }) => msg === "given");
  // They start side by side.
  const own = given.map(({ name, signing, continuation }) => [name, { signing, continuation }]);
  expect(Object.fromEntries(own)).toEqual({
    api: { signing: false, continuation: true },
    worker: { signing: true, continuation: false },
    "tool-call-server": { signing: false, continuation: false },
  });
  expect(new Set(given.map(({ metrics }) => metrics)).size).toBe(1);
  expectStoppedInOrder(lines);
  expect(lines.filter(({ level }) => level > 30)).toEqual([]);
});

it("an uncaught error in one of them stops all in the same order, with exit code 70", async () => {
  const { code, lines } = await run(["throw"], {});
  expect(code).toBe(70);
  expect(namesOf(lines, "uncaught error, stopping").toSorted()).toEqual(NAMES.toSorted());
  expectStoppedInOrder(lines);
});

it("problems of their configurations are told together and once, with exit code 78", async () => {
  const { code, stderr } = await run([], {
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "",
    SVC_PERSIST_SESSION: "true",
  });
  expect(code).toBe(78);
  expect(stderr).toContain("SVC_EXECUTION_MANIFEST_PRIVATE_KEY is required by the worker");
  expect(stderr.match(/SVC_PERSIST_SESSION is not known/g)).toHaveLength(1);
});

it("a secret that none of them takes, and the other topology, are told in every log", async () => {
  const { lines } = await run([], { SVC_EGRESS_GRANT_SECRET: newSecret(), SVC_TOPOLOGY: "separate" }, (pid) =>
    process.kill(pid, "SIGTERM"),
  );
  // They start side by side.
  const inAny = (message: string) => namesOf(lines, message).toSorted();
  expect(inAny("ignoring secrets that this component does not use")).toEqual(NAMES.toSorted());
  expect(inAny("SVC_TOPOLOGY is a setting of ./svc up, and has no effect here")).toEqual(NAMES.toSorted());
});
