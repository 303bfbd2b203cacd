/** ./svc of a user who is not root: what he may do by himself, and what goes on under sudo, which lets him. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { afterEach, beforeEach, expect, test } from "vitest";

const NOBODY = 65_534;
let folder: string;
let dataDir: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-users-")));
  chmodSync(folder, 0o711);
  // As he made it, and as ./svc up left it, which ran under sudo.
  dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o711 });
  chownSync(dataDir, NOBODY, NOBODY);
  mkdirSync(join(dataDir, "run"), { mode: 0o711 });
  mkdirSync(join(dataDir, "logs"), { mode: 0o700 });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** In a mount namespace of its own: the clone may lie where others cannot enter, and a unit of another copy is installed. */
async function asNobody(args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const rules = join(folder, "sudoers");
  writeFileSync(rules, "nobody ALL=(ALL) NOPASSWD:SETENV: ALL\n");
  chmodSync(rules, 0o440);
  const script = `set -eu
    mount --bind "${ROOT}" /srv
    mount --bind "${rules}" /etc/sudoers
    mount -t tmpfs units /etc/systemd/system
    echo "# not ours" >/etc/systemd/system/svc.service
    exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups /srv/svc "$@"`;
  const own = Object.entries(process.env).filter(([name]) => !/^(SVC_|SANDBOX_|VITEST|NODE_)/.test(name));
  const env = { ...Object.fromEntries(own), HOME: "/", SVC_DATA_DIR: dataDir, ...more };
  const words = ["--mount", "--propagation", "slave", "/bin/sh", "-c", script, "sh", ...args];
  const child = spawn("/usr/bin/unshare", words, { env, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  const [code] = await once(child, "close");
  return { code, said };
}

const CONTINUING = "needs root rights: continuing with sudo\n";

test("who owns the data folder makes credentials by himself, also after ./svc up made its folders as root", async () => {
  const made = await asNobody(["key", "add", "laptop"]);
  expect(made).toEqual({ code: 0, said: expect.stringContaining("It is not shown again") });
  expect(made.said).not.toContain("sudo");
  expect(statSync(join(dataDir, "api-keys.jsonl")).uid).toBe(NOBODY);
  expect(await asNobody(["token", "--user", "u1"])).toMatchObject({ code: 0 });
});

test("what root made in it is read and changed under sudo", async () => {
  for (const args of [["key", "add", "a"], ["librechat"], ["token", "--user", "u1"]]) await asNobody(args);
  for (const name of ["api-keys.jsonl", "librechat-key.pem", "token-key.pem"])
    chownSync(join(dataDir, name), 0, 0);
  for (const [args, name, text] of [
    [["key", "list"], "api-keys.jsonl", " active\n"],
    [["key", "add", "b"], "api-keys.jsonl", "It is not shown again"],
    [["librechat"], "librechat-key.pem", "CODEAPI_JWT_PRIVATE_KEY="],
    [["token", "--user", "u1"], "token-key.pem", "User u1 of tenant main"],
  ] as const) {
    const { said } = await asNobody(args);
    expect(said).toContain(`${join(dataDir, name)} ${CONTINUING}`);
    expect(said).toContain(text);
    expect(statSync(join(dataDir, name)).uid).toBe(0);
  }
});

test("what the settings file says does not count as the shell's under sudo", async () => {
  writeFileSync(join(dataDir, "svc.env"), "LOCAL_MODE=false\n", { mode: 0o644 });
  const quiet = await asNobody(["install"]);
  expect(quiet).toMatchObject({ code: 1, said: expect.stringContaining(CONTINUING) });
  expect(quiet.said).toContain("svc.service was not made by this working copy");
  expect(quiet.said).not.toContain("warning:");
  const { said } = await asNobody(["install"], { MAX_REQUESTS: "7" });
  expect(said.match(/^warning: the service does not get what this shell sets: MAX_REQUESTS$/gm)).toHaveLength(
    1,
  );
});
