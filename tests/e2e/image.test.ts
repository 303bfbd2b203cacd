/** One copy has one image: the one that it started with, whatever is built for others, until it is ended and started again. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Status } from "@svc/cli/status/status";
import { readState } from "@svc/cli/supervisor/state";
import { identify, signalProcess } from "@svc/cli/system/process";
import { type ComponentName, runsIn } from "@svc/cli/topology";
import { Api } from "@svc/test-kit/system/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

/** The smallest language that is not always installed. */
const PHP = { lang: "php", code: "<?php echo 6 * 7;" };
const BUILD_MS = 900_000;

let folder: PrivateFolder;
let api: Api;
const command = (...args: string[]) => svc(args, folder.environment);

beforeAll(async () => {
  folder = await privateFolder();
  api = new Api(`${folder.instance.url}/v1`);
  const up = await command("up", "-d", "--no-example", "--languages", "php");
  expect(up.code, up.stderr).toBe(0);
}, BUILD_MS);

afterAll(async () => {
  await command("down");
  folder?.remove();
});

function component(name: ComponentName) {
  const found = readState(folder.instance.runDir)?.components.find((one) => runsIn(one.name, name));
  if (found?.process === undefined) throw new Error(`${name} does not run`);
  return found.process;
}

const textOf = (name: ComponentName, file: string) =>
  readFileSync(`/proc/${component(name).pid}/${file}`, "utf8").replaceAll("\0", "\n");

/** In bytes. */
const diskUse = (path: string) =>
  Number.parseInt(execFileSync("du", ["-s", "--block-size=1", path], { encoding: "utf8" }), 10);

async function expectPhp(): Promise<void> {
  const answer = async () => {
    const { status, text } = await api.post("/exec", PHP).catch(() => ({ status: 0, text: "" }));
    return [status, status === 200 ? (JSON.parse(text) as { stdout: string }).stdout : text];
  };
  await expect.poll(answer, { timeout: 30_000 }).toEqual([200, "42"]);
}

test(
  "tests of the same working copy leave it its languages, also after its components restart",
  async () => {
    await expectPhp();
    const image = realpathSync(folder.instance.image);
    const tests = await svc(["test", "--unit", "cli/test/unit/small.test.ts"]);
    expect(tests.code, tests.stdout + tests.stderr).toBe(0);
    expect(realpathSync(join(folder.instance.packagesDir, "current"))).not.toBe(image);
    expect((await command("restart", "runner")).code).toBe(0);
    await expectPhp();
    const old = component("jaild");
    signalProcess(identify(old.pid) as typeof old, "SIGKILL");
    await expect.poll(() => component("jaild").pid, { timeout: 20_000 }).not.toBe(old.pid);
    await expectPhp();
    expect((await command("restart")).code).toBe(0);
    await expectPhp();
    expect(textOf("jaild", "cmdline")).toContain(`--root\n${image}/rootfs\n`);
    expect(textOf("runner", "environ")).toContain(`SANDBOX_PACKAGES_DIRECTORY=${image}\n`);
  },
  BUILD_MS,
);

test("its status, its languages and what is installed agree", async () => {
  const { languages } = (await api.send("GET", "/languages")).ok<{
    languages: { name: string; status: string }[];
  }>();
  const ready = languages.filter(({ status }) => status === "ready").map(({ name }) => name);
  const status = JSON.parse((await command("status", "--json")).stdout) as Extract<Status, { url: string }>;
  expect(status.image?.languages.toSorted()).toEqual(ready.toSorted());
  expect(status.image?.languages).toContain("php");
  expect(status.next_image).toBeUndefined();
});

test(
  "another choice is refused while it runs, told when it comes, and takes effect as a whole",
  async () => {
    const refused = await command("up", "--languages", "py");
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be changed while") });
    const asked = await svc(["up"], { ...folder.environment, SVC_LANGUAGES: "py" });
    expect(asked.stdout).toContain("It has them after ./svc down, then ./svc up");
    expect((await command("down")).code).toBe(0);

    const again = await command("up", "-d", "--no-example");
    expect(again.code, again.stderr).toBe(0);
    expect(again.stdout).not.toContain("root image");
    await expectPhp();
    expect((await command("down")).code).toBe(0);

    const before = readlinkSync(folder.instance.image);
    const fewer = await command("up", "-d", "--no-example", "--languages", "py");
    expect(fewer.code, fewer.stderr).toBe(0);
    expect(fewer.stdout).toMatch(/The root image has changed\.\n {2}before: .*php.*\n {2}now: {4}(?!.*php)/);
    // Nobody needs it any more.
    expect(existsSync(before)).toBe(false);
    // As the README says of the usual languages.
    expect(diskUse(realpathSync(folder.instance.image))).toBeLessThan(1e9);
    const answer = await api.post("/exec", PHP);
    expect(answer.refusal).toMatchObject({ error: "unsupported_language" });
  },
  BUILD_MS,
);
