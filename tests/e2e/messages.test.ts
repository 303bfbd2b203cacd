/** What ./svc says of a copy that runs, and of one that cannot start: cli/messages, which `-u` renews. Needs root. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { Transcript } from "@svc/test-kit/messages/transcript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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

const transcript = ({ dataDir }: { dataDir: string }) => new Transcript({ [dataDir]: "DATA" });

describe("a copy that asks for credentials", () => {
  it("from up to down", async () => {
    const told = transcript(folder.instance);
    const run = (args: string[], when = "", more: Environment = {}) =>
      told.run(args, when, { env: { ...env, ...more } });
    const up = await svc(["up", "-d", "--no-example"], env);
    expect(up.code, up.stderr).toBe(0);
    expect(up.stderr).toContain("Starting, until a canary run has passed");
    await told.add("./svc up -d --no-example", () => up.stdout);
    await run(["up", "-d"], "it runs already");
    await run(["up", "-d", "--languages", "go"], "it runs already");
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
      await told.add("./svc status", () =>
        stdout
          .replaceAll(/^([a-z-]+) +\d+ {2}/gm, (line, name) => `${name.padEnd(line.length - 5)}PID  `)
          .replace(/running for .*, in/, "running for    A TIME, in"),
      );
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
      await told.expectAs("up-refused");
    } finally {
      await svc(["down"], own.environment);
      own.remove();
    }
  });
});
