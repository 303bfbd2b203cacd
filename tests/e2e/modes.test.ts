/** `./svc up` with authentication, its settings file, `./svc config`, and starts that are refused before anything is made. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { Effective } from "@svc/cli/settings/effective";
import { COMBINED } from "@svc/cli/topology";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { MODE_END } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Environment, privateFolder, svc } from "./support/svc.ts";

const hello = { lang: "py", code: "print(6*7)" };
const signer = newSigner();

/** A folder that is closed to the users of components, as a home is. */
const folder = mkdtempSync(join(tmpdir(), "svc-modes-"));
const settingsFile = join(folder, "team.env");
const MAX_REQUESTS = 77;
mkdirSync(join(folder, "keys"));
writeFileSync(join(folder, "keys", `${KID}.pem`), signer.pem);
writeFileSync(
  settingsFile,
  `# How this copy is run
SVC_JWT_PUBLIC_KEYS_DIR=keys
MAX_REQUESTS="${MAX_REQUESTS}"
DOWNLOAD_MAX_REQUESTS=5
LOG_LEVELS=debug
`,
);
afterAll(() => rmSync(folder, { recursive: true }));

describe("./svc up with keys in its settings file", () => {
  let system: System;
  let api: Api;
  const authorization = () => ({ headers: { authorization: `Bearer ${signer.mint()}` } });
  beforeAll(async () => {
    system = await startSystem({
      args: ["--settings", settingsFile],
      env: { DOWNLOAD_MAX_REQUESTS: "6", SVC_TOPOLOGY: "" },
    });
    api = new Api(system.url);
  });
  afterAll(async () => {
    expect(await system.stop()).toEqual([]);
  });

  it("answers 401 without a token, and runs programs of callers with one", async () => {
    const refused = await api.tryExec(hello);
    expect([refused.status, refused.refusal.error]).toEqual([401, "unauthorized"]);
    const answer = await api.tryExec(hello, authorization());
    expect(answer.ok()).toMatchObject({ stdout: "42\n", code: 0 });
    expect(answer.headers.get("ratelimit-limit")).toBe(String(MAX_REQUESTS));
  });

  it("says the mode, whose token is wanted, and what in the file has no effect", () => {
    const output = system.output();
    expect(output).toContain(`Ready: ${system.url} (authentication: 1 JWT key${MODE_END})\n`);
    expect(output).toContain(`Try: curl -s ${system.url}/exec -H "Authorization: Bearer $TOKEN" `);
    expect(output).toContain("TOKEN is an access token of your own signer (docs/authentication.md).");
    expect(output).toContain(
      `warning: ${settingsFile}:5: LOG_LEVELS is not known and has no effect; did you mean LOG_LEVEL?`,
    );
  });

  it("gives each component a process of its own", () => {
    expect(new Set(COMBINED.map((name) => system.pid(name))).size).toBe(COMBINED.length);
  });

  it("says its mode to a later ./svc up that has no settings", async () => {
    const second = await svc(["up"], system.environment);
    expect(second.stdout).toContain(
      `Already running: ${system.instance.url} (authentication: 1 JWT key${MODE_END}), pid ${system.supervisorPid}`,
    );
  });

  it("./svc config shows each value with its source and default, and no secret", async () => {
    const { code, stdout } = await svc(
      ["config", "--json", "--settings", "team.env", "--data-dir", system.instance.dataDir],
      { ...system.environment, DOWNLOAD_MAX_REQUESTS: "6", SVC_TOPOLOGY: "" },
      { cwd: folder },
    );
    const { mode, file, settings, warnings, problems } = JSON.parse(stdout) as {
      mode: string;
      file: string;
      settings: Effective[];
      warnings: string[];
      problems: string[];
    };
    expect({ code, mode, file, problems }).toEqual({
      code: 0,
      mode: `authentication: 1 JWT key${MODE_END}`,
      file: settingsFile,
      problems: [],
    });
    expect(warnings).toEqual([expect.stringContaining("LOG_LEVELS")]);
    const of = (name: string) => settings.find((each) => each.name === name);
    expect(of("MAX_REQUESTS")).toMatchObject({ value: "77", source: "file" });
    expect(of("DOWNLOAD_MAX_REQUESTS")).toMatchObject({ value: "6", source: "environment" });
    expect(of("SVC_JWT_PUBLIC_KEYS_DIR")).toMatchObject({ value: join(folder, "keys"), source: "file" });
    expect(of("SVC_DATA_DIR")).toMatchObject({ value: system.instance.dataDir, source: "flag" });
    expect(of("SVC_TOPOLOGY")).toMatchObject({ value: "separate", source: "./svc" });
    expect(of("JOB_TIMEOUT")).toMatchObject({ value: "300000", source: "default", default: "300000" });
    expect(of("SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY")).toMatchObject({
      value: "[set]",
      source: "./svc",
    });
  });
});

describe("./svc up with nothing set", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ env: { SVC_TOPOLOGY: "" } });
  });
  afterAll(async () => {
    expect(await system.stop()).toEqual([]);
  });

  it("answers other programs, seven at once, while one sleeps", async () => {
    const api = new Api(system.url);
    const client = new AbortController();
    let hasEnded = false;
    const sleeper = api
      .tryExec(
        { lang: "py", code: `import time; time.sleep(${slow(20)})`, run_timeout: slow(30_000) },
        { signal: client.signal },
      )
      .catch(() => undefined)
      .finally(() => {
        hasEnded = true;
      });
    await until(async () => (await activeExecutions(system, "running")) === 1, slow(20_000));
    const answers = await Promise.all(Array.from({ length: 7 }, () => api.exec(hello)));
    expect(answers.map(({ stdout }) => stdout)).toEqual(answers.map(() => "42\n"));
    expect(hasEnded).toBe(false);
    client.abort();
    await sleeper;
  });
});

describe("./svc up -d with svc.env in the data folder", () => {
  it("hands it to the supervisor, and every command reads it", async () => {
    const { environment, instance, remove } = await privateFolder();
    // The port is in the file alone.
    const { SERVICE_PORT, ...others } = environment;
    writeFileSync(join(instance.dataDir, "svc.env"), `SERVICE_PORT='${SERVICE_PORT}'\nMAX_REQUESTS=78\n`);
    try {
      const up = await svc(["up", "-d", "--no-example"], others, { cwd: folder });
      expect(up.code, up.stderr).toBe(0);
      expect(up.stdout).toContain(
        `Ready: ${instance.url}/v1 (no authentication, this machine only${MODE_END})\n`,
      );
      const answer = await new Api(`${instance.url}/v1`).tryExec(hello);
      expect([answer.status, answer.headers.get("ratelimit-limit")]).toEqual([200, "78"]);
      const exec = await svc(["exec", "--lang", "py", "-"], others, { input: "print(1)" });
      expect(exec).toMatchObject({ code: 0, stdout: "1\n" });
      expect((await svc(["down"], others)).stdout).toBe(`Stopped: ${instance.dataDir}\n`);
    } finally {
      await svc(["down"], others);
      remove();
    }
  });
});

describe("./svc up -d of a copy that asks for credentials", () => {
  /** Runs a line as somebody types it in the repository's folder. */
  const typed = (line: string, environment: Environment) =>
    execFileSync("bash", ["-euo", "pipefail", "-c", line], {
      encoding: "utf8",
      cwd: ROOT,
      env: { ...process.env, ...environment },
    });

  it("runs the example with a token of its own signer, and prints lines that work as they stand", async () => {
    const { environment, instance, remove } = await privateFolder();
    const env = { ...environment, SVC_JWT_PUBLIC_KEYS_DIR: join(instance.dataDir, "jwt-keys") };
    try {
      expect((await svc(["token", "--user", "me"], env)).code).toBe(0);
      const up = await svc(["up", "-d"], env);
      expect(up.code, up.stderr).toBe(0);
      expect(up.stdout).toContain("The plot: ");
      expect(up.stdout).toContain(`Ready: ${instance.url}/v1 (authentication: 1 JWT key${MODE_END})\n`);
      const [hello = "", upload = "", run = ""] = up.stdout.match(/^ {2}curl .*$/gm) ?? [];
      expect(JSON.parse(typed(hello, env))).toMatchObject({ stdout: "42\n" });
      expect(JSON.parse(typed(upload, env))).toMatchObject({ files: [{ name: "sales.csv" }] });
      expect(JSON.parse(typed(run, env))).toMatchObject({ code: 0 });
    } finally {
      await svc(["down"], env);
      remove();
    }
  });

  it("prints lines that make an API key where there are only API keys", async () => {
    const { environment, instance, remove } = await privateFolder();
    const env = { ...environment, SVC_API_KEYS_FILE: join(instance.dataDir, "api-keys.jsonl") };
    const out = mkdtempSync(join(folder, "out-"));
    try {
      expect((await svc(["key", "add", "laptop"], env)).code).toBe(0);
      const up = await svc(["up", "-d"], env);
      expect(up.code, up.stderr).toBe(0);
      expect(up.stdout).toContain(`(authentication: 1 API key${MODE_END})`);
      const lineOf = (title: string) => new RegExp(`^${title}: (.*)$`, "m").exec(up.stdout)?.[1] ?? "false";
      expect(JSON.parse(typed(lineOf("Try"), env))).toMatchObject({ stdout: "42\n" });
      typed(lineOf("The example").replace("--out .", `--out ${out}`), env);
      expect(readdirSync(out)).toContain("plot.png");
    } finally {
      await svc(["down"], env);
      remove();
    }
  });
});

describe("a start is refused before anything is made", () => {
  async function refusal(settings: Record<string, string>, args: readonly string[] = []): Promise<string> {
    const { environment, instance, remove } = await privateFolder();
    try {
      const { code, stdout, stderr } = await svc(["up", "--no-example", ...args], {
        ...environment,
        ...settings,
      });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).not.toMatch(/\[\d\/\d\]/);
      expect(readdirSync(instance.dataDir)).toEqual([]);
      return stderr;
    } finally {
      remove();
    }
  }

  it("with local mode and keys, naming both, and with everything else that is wrong", async () => {
    const told = await refusal({
      LOCAL_MODE: "true",
      SVC_JWT_PUBLIC_KEYS_DIR: join(folder, "keys"),
      S3_ACCESS_KEY: "x",
      EGRESS_GRANT_TTL_SECONDS: "1",
      SVC_NONSENSE: "1",
    });
    expect(told).toContain(
      "LOCAL_MODE=true turns authentication off and SVC_JWT_PUBLIC_KEYS_DIR turns it on",
    );
    expect(told).toContain("S3_ACCESS_KEY and S3_SECRET_KEY belong together");
    expect(told).toContain("EGRESS_GRANT_TTL_SECONDS must cover");
    expect(told).toContain("SVC_NONSENSE is not known");
  });

  it("with authentication that no key stands for", async () => {
    expect(await refusal({ LOCAL_MODE: "false" })).toContain(
      "no key that verifies access tokens (EdDSA): set",
    );
  });

  it("with keys and API keys that the API would refuse, each with its variable and place", async () => {
    const keys = join(folder, "broken-keys");
    mkdirSync(keys);
    writeFileSync(join(keys, "old.pem"), "no key");
    const apiKeys = join(folder, "api-keys.jsonl");
    writeFileSync(apiKeys, "no key\n", { mode: 0o600 });
    const told = await refusal({
      SVC_JWT_PUBLIC_KEYS_DIR: keys,
      SVC_JWT_JWKS_JSON: "{}",
      SVC_API_KEYS_FILE: apiKeys,
    });
    expect(told).toContain("SVC_JWT_JWKS_JSON is not of the form {keys:[...]}");
    expect(told).toContain(`SVC_JWT_PUBLIC_KEYS_DIR ${keys}/old.pem cannot be read as a public key`);
    expect(told).toContain(`SVC_API_KEYS_FILE ${apiKeys} is broken: line 1 is not JSON`);
    const missing = await refusal({ SVC_API_KEYS_FILE: join(folder, "missing.jsonl") });
    expect(missing).toContain("missing.jsonl does not exist; ./svc key add NAME makes it");
    chmodSync(apiKeys, 0o644);
    expect(await refusal({ SVC_API_KEYS_FILE: apiKeys })).toContain(`run: chmod 600 ${apiKeys}`);
  });

  it("without authentication on an address of others, naming the variable and the danger", async () => {
    const told = await refusal({ SERVICE_HOST: "0.0.0.0" });
    expect(told).toMatch(/SERVICE_HOST=0\.0\.0\.0 without authentication lets everybody .* run programs/);
    expect(told).toContain("docs/deploy.md");
  });

  it("on an address that this machine does not have", async () => {
    const keys = { SVC_JWT_PUBLIC_KEYS_DIR: join(folder, "keys") };
    expect(await refusal({ ...keys, SERVICE_HOST: "192.0.2.1" })).toContain(
      "the api cannot listen on 192.0.2.1 (EADDRNOTAVAIL)",
    );
  });

  it("with a settings file that is not understood", async () => {
    const path = join(folder, "broken.env");
    writeFileSync(path, "A=1\nMAX_REQUESTS\n");
    expect(await refusal({}, ["--settings", path])).toContain(`${path}:2: KEY=value is expected`);
  });

  it("where ports are taken: each is named, and who holds it by its command line", async () => {
    const squatters = [createServer(), createServer()];
    const ports = await Promise.all(
      squatters.map(
        (squatter) =>
          new Promise<number>((resolve) => {
            squatter.listen(0, "127.0.0.1", () => resolve((squatter.address() as { port: number }).port));
          }),
      ),
    );
    try {
      const told = await refusal({ SERVICE_PORT: String(ports[0]), PORT: String(ports[1]) });
      expect(told).toContain(`port ${ports[0]} of the api is taken by pid ${process.pid} (`);
      expect(told).toContain(`port ${ports[1]} of the runner is taken by pid ${process.pid} (`);
      expect(told).not.toContain("MainThread");
    } finally {
      for (const squatter of squatters) squatter.close();
    }
  });

  it.each(["/proc/svc/data", "/dev/null/data"])(
    "with the data folder %s, which cannot be made",
    async (path) => {
      const { environment, remove } = await privateFolder();
      remove();
      const { code, stderr } = await svc(["up", "--no-example", "--data-dir", path], environment);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /error: (.*cannot be made \(ENOENT\)|a part of .* is a file, and a folder is needed)/,
      );
      expect(existsSync(path)).toBe(false);
    },
  );
});
