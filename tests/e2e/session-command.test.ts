/** `./svc up --sessions` and `./svc exec --session`: a shell's runs continue each other. */
import { MODE_END } from "@svc/test-kit/system/guests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

let folder: PrivateFolder;
beforeAll(async () => {
  folder = await privateFolder();
});
afterAll(async () => {
  await svc(["down"], folder.environment);
  folder.remove();
});

const exec = (...args: string[]) => svc(["exec", ...args], folder.environment);

describe("a copy started with --sessions", () => {
  it("says so, also when it runs already", async () => {
    const up = await svc(["up", "-d", "--no-example", "--sessions"], folder.environment);
    expect(up.code, up.stderr).toBe(0);
    expect(up.stdout).toContain(`(no authentication, this machine only; sessions are kept${MODE_END})`);
    const again = await svc(["up", "-d", "--sessions"], folder.environment);
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`; sessions are kept${MODE_END})`),
    });
  });

  it("lets a second step see the variables and files of the first", async () => {
    const first = await exec("-c", "n = 6\nopen('f', 'w').write('7')", "--session", "draft");
    expect(first).toMatchObject({ code: 0, stdout: "" });
    expect(first.stderr).toBe('svc: output files not saved (use --out DIR): "f"\n');
    const second = await exec("-c", "print(n * int(open('f').read()))", "-s", "draft");
    expect(second).toEqual({ code: 0, stdout: "42\n", stderr: "" });
    const other = await exec("-c", "print('n' in globals())", "--session", "other");
    expect(other).toEqual({ code: 0, stdout: "False\n", stderr: "" });
  });

  it("says when a run was not saved, and gives the program's exit code", async () => {
    const ended = await exec("-c", "n = 0\nwhile 1: pass", "--session", "draft", "--timeout", "500");
    expect(ended.code).toBe(137);
    expect(ended.stderr).toContain(
      "svc: session draft was not saved: the next run begins with what this one began with\n",
    );
    expect(await exec("-c", "print(n)", "--session", "draft")).toMatchObject({ stdout: "6\n" });
  });

  it("starts without sessions the next time, and says so to --session", async () => {
    expect((await svc(["down"], folder.environment)).code).toBe(0);
    const up = await svc(["up", "-d", "--no-example"], folder.environment);
    expect(up.code, up.stderr).toBe(0);
    expect(up.stdout).toContain(`(no authentication, this machine only${MODE_END})`);
    const run = await exec("-c", "print('n' in globals()); raise SystemExit(3)", "--session", "draft");
    expect(run).toMatchObject({ code: 3, stdout: "False\n" });
    expect(run.stderr).toMatch(/^svc: this service keeps no sessions: .*\.\/svc up --sessions.*\n$/);
  });
});
