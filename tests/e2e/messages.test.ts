/** What ./svc says of a copy that runs, and of one that cannot start: cli/messages, which `-u` renews. Needs root. */
import { generateKeyPairSync } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BASE } from "@svc/cli/install/image";
import { INSTALL_STEPS, install } from "@svc/cli/install/install";
import { logPath } from "@svc/cli/supervisor/logs";
import { readState } from "@svc/cli/supervisor/state";
import { type Note, Progress } from "@svc/cli/terminal";
import { userOf } from "@svc/cli/users";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { Transcript } from "@svc/test-kit/messages/transcript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { apart } from "./support/apart.ts";
import { type Environment, type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

let folder: PrivateFolder;
let env: Environment;
/** Made before the copy is started. */
let key: string;
beforeAll(async () => {
  folder = await privateFolder();
  const { dataDir } = folder.instance;
  env = {
    ...folder.environment,
    SVC_API_KEYS_FILE: join(dataDir, "api-keys.jsonl"),
    SVC_JWT_PUBLIC_KEYS_DIR: join(dataDir, "jwt-keys"),
    SVC_JWT_KEY_CACHE_TTL_SECONDS: "1",
    SVC_METRICS_TOKEN: newSecret(),
  };
  key = (await svc(["key", "add", "laptop", "--user", "alice"], env)).stdout.trim();
  expect((await svc(["token", "--user", "bob"], env)).code).toBe(0);
});
afterAll(async () => {
  await svc(["down"], env);
  folder.remove();
});

/** Where there is no sudo. The clone may lie in a folder that others cannot enter. */
async function asNobody(commands: readonly string[]): Promise<string> {
  const nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ /srv/svc";
  const lines = commands.map(
    (command) => `echo '$ ./svc ${command}'; ${nobody} ${command} </dev/null || echo "(exit code $?)"`,
  );
  return steady(await apart(`mount --bind "$(dirname "$SVC")" /srv; hide sudo; ${lines.join("; ")}`, env));
}

const doctor = async (subjects: readonly string[]) => {
  const { stdout } = await svc(["doctor"], env);
  return linesOf(steady(stdout), subjects);
};

/** The lines of doctor about these, each with its fix. */
function linesOf(text: string, subjects: readonly string[]): string {
  const lines = text.trimEnd().split("\n");
  const isOurs = (line: string | undefined) => subjects.includes(line?.split(/ +/)[1] ?? "");
  const ours = lines.filter((line, at) => isOurs(line) || (/^ +fix/.test(line) && isOurs(lines[at - 1])));
  return ours.join("\n");
}

/** Without what differs from machine to machine. */
const steady = (text: string) =>
  text
    .replace(/v\d+\.\d+\.\d+ of node_modules/, "VERSION of node_modules")
    .replaceAll(/^([a-z-]+) +\d+ {2}/gm, (line, name) => `${name.padEnd(line.length - 5)}PID  `)
    .replace(/\d+ of \d+ in use/, "0 of N in use")
    .replace(/running for .*, in/, "running for    A TIME, in");

const transcript = ({ dataDir }: { dataDir: string }) => new Transcript({ [dataDir]: "DATA" });

describe("a copy that asks for credentials", () => {
  // Many commands, one after the other.
  it("from up to down", { timeout: 300_000 }, async () => {
    const told = transcript(folder.instance);
    const run = (args: string[], when = "", more: Environment = {}) =>
      told.run(args, when, { env: { ...env, ...more } });
    const up = await svc(["up", "-d", "--no-example"], env);
    expect(up.code, up.stderr).toBe(0);
    expect(up.stderr).toContain("Starting, until a canary run has passed");
    await told.add("./svc up -d --no-example", () => up.stdout);
    await run(["up", "-d"], "it runs already");
    await run(["up", "-d"], "it runs already, and the settings turn authentication off now", {
      SVC_API_KEYS_FILE: "",
      SVC_JWT_PUBLIC_KEYS_DIR: "",
    });
    await run(["up", "-d", "--languages", "go"], "it runs already");
    await run(["up", "-d", "--port-offset", "1"], "it runs already");
    await run(["up", "-d"], "it runs already; SVC_LANGUAGES=go", { SVC_LANGUAGES: "go" });
    await told.add("a user who is not root and has no sudo", () =>
      asNobody(["status", "down", "restart", "logs", "key list", "up -d"]),
    );
    await told.add("./svc doctor: what it says of a copy that runs", () =>
      doctor(["node", "ports", "users"]),
    );
    await run(["up", "-d", "--sessions"], "it runs already, without sessions");
    await run(["status", "--port-offset", "1"]);
    await run(["exec", "-c", "print(6*7)"], "without a credential");
    await run(["exec", "-c", "print(6*7)"], "with a credential", { SVC_TOKEN: key });
    await run(["exec", "-c", "import sys; sys.exit(3)"], "the program's own exit code", { SVC_TOKEN: key });
    await run(["exec", "-c", "import os; os.abort()"], "a signal ends the program", { SVC_TOKEN: key });
    await run(["exec", "-c", "while 1: pass", "--timeout", "500"], "a limit ends it", { SVC_TOKEN: key });
    await run(["exec", "--lang", "cobol", "-c", "1"], "", { SVC_TOKEN: key });
    await run(["key", "add", "ci", "--expires", "1h"]);
    await run(["token", "--user", "bob"]);
    await run(["token", "--user", "bob"], "the settings of the shell name another folder of keys", {
      SVC_JWT_PUBLIC_KEYS_DIR: "/nowhere",
    });
    await run(["install"], "a copy runs that systemd does not know");
    await run(["librechat"]);
    await run(["librechat", "--shared-key"]);
    await run(["restart", "jaild"]);
    await run(["restart", "wroker"]);
    const restart = await svc(["restart", "worker"], env);
    expect(restart.stderr).toContain("Restarting, one after the other");
    await told.add("./svc restart worker", () => restart.stdout);
    await run(["logs", "--request", "00000000-0000-4000-8000-000000000000"]);
    await run(["down"]);
    await run(["down"], "once more");
    await told.add("./svc doctor: whether components can have users", () => doctor(["users"]));
    await told.add("./svc doctor, by a user who is not root", async () =>
      linesOf(await asNobody(["doctor"]), ["rights", "jail", "users"]),
    );
    await told.expectAs("running");
  });
});

describe("the example and the status", () => {
  it("of a copy without authentication, whose metrics are closed to this shell", async () => {
    const own = await privateFolder();
    const settings = { ...own.environment, SVC_METRICS_TOKEN: newSecret() };
    try {
      const up = await svc(["up", "-d"], settings);
      expect(up.code, up.stderr).toBe(0);
      expect(up.stderr).toContain("The example: cli/example/report.py over sales.csv");
      const { code, stdout } = await svc(["status"], { ...settings, SVC_METRICS_TOKEN: "" });
      expect(code).toBe(0);
      const told = transcript(own.instance);
      await told.add("./svc up -d", () => up.stdout.replaceAll(/download\/\S+/g, "download/SESSION/FILE"));
      await told.add("./svc status", () => steady(stdout));
      await told.expectAs("example-and-status");
    } finally {
      await svc(["down"], settings);
      own.remove();
    }
  });
});

describe("a start that fails", () => {
  it("says what is in the way", async () => {
    const own = await privateFolder();
    const told = transcript(own.instance);
    const run = (when: string, settings: Environment) =>
      told.run(["up", "-d", "--no-example"], when, { env: { ...own.environment, ...settings } });
    try {
      expect(await run("a port of root", { SERVICE_PORT: "81" })).toBe(1);
      const objects = join(own.instance.dataDir, "chosen");
      mkdirSync(objects);
      writeFileSync(join(objects, "file"), "");
      expect(await run("a folder of objects that is somebody else's", { STORAGE_DIR: objects })).toBe(1);
      const { uid, gid } = userOf("redis", own.instance);
      const redis = join(own.instance.dataDir, "redis");
      mkdirSync(redis, { recursive: true });
      writeFileSync(join(redis, "restored"), "");
      chownSync(redis, uid, gid);
      expect(await run("a file that was restored as root", {})).toBe(1);
      rmSync(join(redis, "restored"));
      const keys = join(own.instance.dataDir, "public-keys");
      mkdirSync(keys, { mode: 0o755 });
      const { publicKey } = generateKeyPairSync("ed25519");
      writeFileSync(join(keys, "own.pem"), publicKey.export({ type: "spki", format: "pem" }), {
        mode: 0o600,
      });
      expect(await run("a public key that others cannot read", { SVC_JWT_PUBLIC_KEYS_DIR: keys })).toBe(1);
      await told.expectAs("up-refused");
    } finally {
      await svc(["down"], own.environment);
      own.remove();
    }
  });
});

describe("the steps before a start", () => {
  it("have these names, where they take their time", async () => {
    const own = await privateFolder();
    const titles: string[] = [];
    class Titles extends Progress {
      override step<T>(title: string, work: (note: Note) => Promise<T>): Promise<T> {
        titles.push(title);
        return work(() => undefined);
      }
    }
    const link = join(own.instance.dataDir, "image");
    await install(["run"], own.instance, new Titles(INSTALL_STEPS), { choice: BASE, link });
    own.remove();
    const told = transcript(own.instance);
    await told.add("./svc up", () => titles.join("\n"));
    await told.expectAs("steps");
  });
});

describe("the supervisor", () => {
  it("logs what becomes of its components", async () => {
    const own = await privateFolder();
    const objects = join(own.instance.dataDir, "chosen");
    mkdirSync(objects);
    writeFileSync(join(objects, "file"), "");
    const settings = {
      ...own.environment,
      // No component can have a user of its own.
      STORAGE_DIR: objects,
      SVC_ALLOW_PRIVILEGED_COMPONENTS: "true",
      LOG_ROTATE_BYTES: "1000",
      SHUTDOWN_GRACE_MS: "1",
    };
    // Where the log would be copied to.
    mkdirSync(join(own.instance.logsDir, "runner.log.new"), { recursive: true });
    const log = () => readFileSync(logPath(own.instance.logsDir, "supervisor"), "utf8");
    const signal = (component: string, name: NodeJS.Signals) => {
      const found = readState(own.instance.runDir)?.components.find((one) => one.name === component);
      process.kill(found?.process?.pid ?? Number.NaN, name);
    };
    try {
      expect((await svc(["up", "-d", "--no-example"], settings)).code).toBe(0);
      signal("runner", "SIGKILL");
      await expect.poll(log).toContain("it is started again");
      await expect.poll(async () => (await svc(["status"], settings)).code).toBe(0);
      await expect.poll(log).toContain("rotating the log of runner failed");
      signal("runner", "SIGSTOP");
      const told = transcript(own.instance);
      const first = svc(["restart", "runner"], settings);
      await expect.poll(log).toContain("restarting runner");
      await told.run(["restart"], "while another one is under way", { env: settings });
      signal("jaild", "SIGSTOP");
      expect((await svc(["down"], settings)).code).toBe(0);
      await told.add("./svc restart runner, and everything is ended meanwhile", async () =>
        (await first).stderr.replaceAll(/^(\[| {6}).*\n/gm, ""),
      );
      const { stdout } = await svc(["logs", "supervisor"], settings);
      const lines = stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.replace(/^\S+ /, ""));
      await told.add("./svc logs supervisor: each line once, in the order of the alphabet", () =>
        [...new Set(lines)].sort().join("\n"),
      );
      await told.expectAs("supervisor-log");
    } finally {
      await svc(["down"], settings);
      own.remove();
    }
  });
});
