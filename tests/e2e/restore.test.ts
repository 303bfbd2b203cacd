/**
 * A backup as docs/operate.md describes it, restored into an empty folder of another path: callers' files are there, and what the page says
 * of each part of the backup is so, also of files that were restored without their owners.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProgrammaticResponse, ToolCallRequired, UploadedFile } from "@svc/contracts";
import { readPage } from "@svc/test-kit/programs/page";
import { Api, refTo } from "@svc/test-kit/system/api";
import { declare, driveOn, resultsOf, startPaused, tryResume } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { privateFolder, svc } from "./support/svc.ts";

const CONTENT = Buffer.from("kept \u0000\u00ff");
const MAX_REQUESTS = 77;
const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const ONCE = { headers: { "idempotency-key": "once" } };
const DRAW = { lang: "py", code: "import uuid\nprint(uuid.uuid4())" };

let folder: string;
let archive: string;
let file: UploadedFile;
/** Stood still when the service was stopped. */
let paused: ToolCallRequired;
let drawn: string;

/** A folder for a copy; the components' users pass through it. */
function dataFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  chmodSync(path, 0o711);
  return path;
}

/** `parts`: all by default. */
function restore(name: string, parts: readonly string[] = []): string {
  const data = dataFolder(name);
  execFileSync("tar", ["-C", data, "-xpf", archive, ...parts]);
  return data;
}

async function withCopy(data: string, work: (api: Api, system: System) => Promise<void>): Promise<void> {
  const system = await startSystem({ env: { SVC_DATA_DIR: data } });
  try {
    await work(new Api(system.url), system);
  } finally {
    expect(await system.stop()).toEqual([]);
  }
}

async function expectFile(api: Api): Promise<void> {
  expect((await api.bytes(file)).equals(CONTENT)).toBe(true);
  const code = "import sys; sys.stdout.buffer.write(open('kept.bin', 'rb').read()[:4])";
  expect((await api.exec({ lang: "py", code, files: [refTo(file)] })).stdout).toBe("kept");
}

async function refusalOfPaused(api: Api): Promise<[number, string]> {
  const answer = await tryResume(api, paused.continuation_token, resultsOf(paused.tool_calls, TOOLS));
  return [answer.status, answer.refusal.error];
}

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-backup-")));
  chmodSync(folder, 0o711);
  const data = dataFolder("data");
  writeFileSync(join(data, "svc.env"), `MAX_REQUESTS=${MAX_REQUESTS}\n`, { mode: 0o600 });
  await withCopy(data, async (api) => {
    file = (await api.upload({ "kept.bin": CONTENT }))[0] as UploadedFile;
    const code = "print('first')\nprint(await add(a=1, b=2))";
    paused = await startPaused(api, { code, language: "python", tools: declare(["add"]) });
    drawn = (await api.exec(DRAW, ONCE)).stdout;
  });
  expect((await svc(["key", "add", "laptop"], { SVC_DATA_DIR: data })).code).toBe(0);
  archive = join(folder, "backup.tar");
  const [, command = ""] = /^(.*tar .*)$/m.exec(readPage("docs/operate.md").blocks("sh").join("\n")) ?? [];
  execFileSync("bash", ["-ec", command], { cwd: folder });
  expect(statSync(archive).mode & 0o777).toBe(0o600);
  rmSync(data, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test("with everything files come back to their owner, settings hold, paused programs go on, and answers are kept", async () => {
  const data = restore("everything");
  expect((await svc(["key", "list"], { SVC_DATA_DIR: data })).stdout).toContain(" laptop ");
  await withCopy(data, async (api) => {
    await expectFile(api);
    const again = await api.tryExec(DRAW, ONCE);
    expect(again.json()).toMatchObject({ stdout: drawn });
    expect(again.headers.get("ratelimit-limit")).toBe(String(MAX_REQUESTS));
    const { answer } = await driveOn(api, paused satisfies ProgrammaticResponse, TOOLS);
    expect(answer).toMatchObject({ status: "completed", stdout: "first\n3\n", tool_calls_made: 1 });
  });
});

test("without Redis files come back, and paused programs have expired", async () => {
  await withCopy(restore("without-redis", ["./objects", "./secrets.env"]), async (api) => {
    await expectFile(api);
    expect(await refusalOfPaused(api)).toEqual([400, "execution_expired"]);
    expect((await api.exec(DRAW, ONCE)).stdout).not.toBe(drawn);
  });
});

test("with other secrets files come back, and tokens of paused programs are not valid", async () => {
  await withCopy(restore("objects-alone", ["./objects"]), async (api) => {
    await expectFile(api);
    expect(await refusalOfPaused(api)).toEqual([400, "invalid_continuation_token"]);
  });
});

test("without owners and modes, as root's own, everything comes back", async () => {
  const data = dataFolder("of-root");
  const words = [
    "-C",
    data,
    "--no-same-owner",
    "--no-same-permissions",
    "-xf",
    archive,
    "./objects",
    "./redis",
  ];
  execFileSync("tar", words, { env: { ...process.env }, stdio: "pipe" });
  await withCopy(data, expectFile);
});

test("over the folder of a copy that ran, without owners: refused with the command that helps", async () => {
  const copy = await privateFolder();
  const up = () => svc(["up", "-d", "--no-example"], copy.environment);
  const down = () => svc(["down"], copy.environment);
  try {
    expect((await up()).code).toBe(0);
    expect((await down()).code).toBe(0);
    const unpacked = dataFolder("unpacked");
    execFileSync("tar", ["-C", unpacked, "-xf", archive, "./objects"]);
    const { dataDir, url } = copy.instance;
    const words = ["-rT", "--no-preserve=all", join(unpacked, "objects"), join(dataDir, "objects")];
    execFileSync("cp", words);
    const refused = await up();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /objects\/\S+ does not belong to the user of the file server, \d+, as its folder does/,
    );
    const [, command = ""] = /as after a restore, run: (chown -hR .*)$/m.exec(refused.stderr) ?? [];
    execFileSync("/bin/sh", ["-c", command]);
    const started = await up();
    expect(started.code, started.stderr).toBe(0);
    await expectFile(new Api(`${url}/v1`));
  } finally {
    await down();
    copy.remove();
  }
});
