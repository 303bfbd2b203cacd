/** The components' users: what an earlier copy left is handed to them safely, and without users there is no start. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readState } from "@svc/cli/supervisor/state";
import { userOf } from "@svc/cli/users";
import { Api } from "@svc/test-kit/system/api";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

let folder: PrivateFolder;

beforeEach(async () => {
  folder = await privateFolder();
});
afterEach(async () => {
  await svc(["down"], folder.environment);
  folder.remove();
});

const up = (environment: Record<string, string> = {}) =>
  svc(["up", "-d", "--no-example"], { ...folder.environment, ...environment });

/** Every entry below a folder, and the folder; links are not followed. */
function entriesBelow(path: string): string[] {
  return execFileSync("find", [path, "-print0"], { encoding: "utf8" }).split("\0").filter(Boolean);
}

function ownersBelow(path: string): Set<number> {
  const entries = entriesBelow(path).map((entry) => lstatSync(entry));
  return new Set(entries.filter((entry) => !entry.isSymbolicLink()).map(({ uid }) => uid));
}

function userOfProcess(name: string): string {
  const component = readState(folder.instance.runDir)?.components.find((one) => one.name === name);
  return /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${component?.process?.pid}/status`, "utf8"))?.[1] ?? "";
}

test.each([0, 54_321])(
  "what user %d left is taken over: files stay readable, no link is followed",
  async (old) => {
    const { instance } = folder;
    expect((await up()).code).toBe(0);
    const api = new Api(`${instance.url}/v1`);
    const first = await api.exec({ lang: "bash", code: "echo kept > a.txt" });
    expect((await svc(["down"], folder.environment)).code).toBe(0);

    const [objects, redis] = ["objects", "redis"].map((name) => join(instance.dataDir, name)) as [
      string,
      string,
    ];
    for (const entry of [...entriesBelow(objects), ...entriesBelow(redis)]) chownSync(entry, old, old);
    const outside = join(instance.dataDir, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "file"), "not theirs", { mode: 0o600 });
    symlinkSync(outside, join(objects, "to-a-folder"));
    symlinkSync(join(outside, "file"), join(redis, "to-a-file"));
    // Somebody else's file in the folder, such as a second name of one that lies outside.
    writeFileSync(join(redis, "of-another"), "");
    chownSync(join(redis, "of-another"), 4321, 4321);

    const refused = await up();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`${join(redis, "of-another")} does not belong to the user of Redis`);
    expect(lstatSync(join(redis, "of-another")).uid).toBe(4321);
    rmSync(join(redis, "of-another"));

    const again = await up();
    expect(again.code, again.stderr).toBe(0);
    expect([statSync(outside).uid, statSync(join(outside, "file")).uid]).toEqual([0, 0]);
    expect(ownersBelow(objects)).toEqual(new Set([userOf("file-server", instance).uid]));
    const second = await api.exec({
      lang: "bash",
      code: "cat a.txt",
      files: first.files.map(({ id, storage_session_id, name }) => ({ id, storage_session_id, name })),
    });
    expect(second.stdout).toBe("kept\n");
  },
);

test("without users of their own the components are not started, unless the operator insists", async () => {
  const { instance } = folder;
  // A file that the operator names and that only root can read.
  const authority = join(instance.dataDir, "ca.pem");
  writeFileSync(authority, "", { mode: 0o600 });
  const refused = await up({ REDIS_TLS_CA: authority });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("the components cannot run as users of their own");
  expect(refused.stderr).toContain(authority);
  expect(refused.stderr).toContain("SVC_ALLOW_PRIVILEGED_COMPONENTS=true");
  expect(readdirSync(instance.runDir)).toEqual([]);

  const insisted = await up({ REDIS_TLS_CA: authority, SVC_ALLOW_PRIVILEGED_COMPONENTS: "true" });
  expect(insisted.code, insisted.stderr).toBe(0);
  expect(userOfProcess("runner")).toBe("0");
  expect(readFileSync(join(instance.logsDir, "supervisor.log"), "utf8")).toContain(
    "the components run as root",
  );
  expect((await svc(["down"], folder.environment)).code).toBe(0);

  chmodSync(authority, 0o644);
  const allowed = await up({ REDIS_TLS_CA: authority, SVC_ALLOW_PRIVILEGED_COMPONENTS: "true" });
  expect(allowed.code, allowed.stderr).toBe(0);
  expect(userOfProcess("runner")).toBe(String(userOf("runner", instance).uid));
  const { stdout } = await new Api(`${instance.url}/v1`).exec({ lang: "py", code: "print(6 * 7)" });
  expect(stdout).toBe("42\n");
});

test("a folder that the operator chose is given away only when it is empty", async () => {
  const { instance } = folder;
  const chosen = join(instance.dataDir, "chosen");
  mkdirSync(chosen);
  writeFileSync(join(chosen, "of-somebody"), "");
  const refused = await up({ STORAGE_DIR: chosen });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`STORAGE_DIR ${chosen} does not belong to the user of the file server`);
  expect(refused.stderr).toContain(`chown -hR --from=0 ${userOf("file-server", instance).uid}`);
  expect(statSync(join(chosen, "of-somebody")).uid).toBe(0);

  const fresh = join(instance.dataDir, "fresh");
  const started = await up({ STORAGE_DIR: fresh });
  expect(started.code, started.stderr).toBe(0);
  const { files } = await new Api(`${instance.url}/v1`).exec({ lang: "bash", code: "echo kept > a.txt" });
  expect(files).toHaveLength(1);
  expect(ownersBelow(fresh)).toEqual(new Set([userOf("file-server", instance).uid]));
});
