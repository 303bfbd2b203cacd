/** What commands say that need no running copy and no rights: cli/messages, one file for each command. `-u` renews them. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Finding } from "@svc/cli/doctor/finding";
import { identify } from "@svc/cli/system/process";
import { runSvc, Transcript } from "@svc/test-kit/messages/transcript";
import { afterEach, beforeEach, expect, it } from "vitest";

let folder: string;
let dataDir: string;
let told: Transcript;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-messages-")));
  dataDir = join(folder, "data");
  mkdirSync(dataDir);
  told = new Transcript({ [dataDir]: "DATA", [folder]: "FOLDER" });
});
afterEach(() => rmSync(folder, { recursive: true }));

const env = () => ({ SVC_DATA_DIR: dataDir });
const run = (args: readonly string[], when = "", more: Record<string, string> = {}, input = "") =>
  told.run(args, when, { env: { ...env(), ...more }, input, cwd: folder });
const file = (name: string, text: string, mode = 0o600) => {
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), mode);
  return join(folder, name);
};

const shownFinding = ({ grade, subject, note, fix }: Finding) =>
  `${grade}  ${subject}: ${note}${fix === undefined ? "" : `\nfix: ${fix}`}`;

/** A service that answers all requests alike. */
async function answering<T>(
  status: number,
  body: string,
  headers: Record<string, string>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => response.writeHead(status, headers).end(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await work(`127.0.0.1:${(server.address() as { port: number }).port}`);
  } finally {
    server.close();
  }
}

it("a command line that is not understood", async () => {
  for (const name of ["exce", "start", "stop", "version", "frobnicate", ""]) await run([name]);
  await run(["help", "exce"]);
  await run(["help", "frobnicate"]);
  await run(["--frob"]);
  for (const word of ["ad", "create", "help", "frobnicate"]) await run(["key", word]);
  await run(["key", "ad", "one", "--user", "alice"]);
  await run(["key", "add", "one", "two"]);
  await run(["status", "extra"]);
  await run(["status", ""]);
  await run(["exec", ""]);
  await run(["status", "--jsn"]);
  await run(["status", "--json=yes"]);
  await run(["status", "--data-dir"]);
  await run(["status", "--data-dir", ""], "as of a variable that is not set");
  await run(["exec", "--lang", "-c", "1"]);
  await run(["restart", "api", "runner"]);
  await run(["completion", "tcsh"]);
  await told.expectAs("command-line");
});

it("exec", async () => {
  await run(["exec", "missing.py"]);
  await run(["exec"], "standard input is empty");
  mkdirSync(join(folder, "sub"));
  await run(["exec", "-c", "1", "--in", "sub"]);
  await run(["exec", "-c", "1", "--in", "missing.csv"]);
  await run(["exec", "sub"], "a folder in place of a program");
  await run(["exec", "-", "--stdin", "-"]);
  await run(["exec", file("job.xyz", "")], "a file whose extension names no language");
  await run(["exec", "-c", "1", "--timeout", "soon"]);
  await run(["exec", "-c", "1", "--token", "two words"]);
  await run(["exec", "-c", "1", "--url", "127.0.0.1:1"], "nothing listens there");
  // No port of a copy that another test starts.
  const elsewhere = ["--data-dir", "other", "--port-offset", "55000"];
  await run(["exec", "-c", "1", ...elsewhere], "the copy does not run");
  await run(["exec", "-c", "1", "--stdin", "sub"]);
  await run(["exec", "-c", "1", "--stdin", "/dev/zero"], "what has no end");
  await run(["exec", "-c", "1", "--in", "/dev/zero"]);
  await run(["exec", "-c", "1", "--in", `${basename(file("data.csv", ""))}:`]);
  const refusal = (error: string, message: string) => JSON.stringify({ error, message });
  await answering(401, refusal("unauthorized", "Send a valid access token"), {}, async (url) => {
    await run(["exec", "-c", "1", "--url", url], "the service asks for a credential");
    await run(["exec", "-c", "1", "--url", url, "--token", "wrong"]);
  });
  await answering(429, refusal("rate_limited", "Too many"), { "retry-after": "7" }, (url) =>
    run(["exec", "-c", "1", "--url", url], "the service is asked too often"),
  );
  await answering(502, "<html>bad gateway</html>", {}, (url) =>
    run(["exec", "-c", "1", "--url", url], "a proxy answers in its place"),
  );
  await run(
    ["exec", "-c", "1", "--session", "two words", "--url", "127.0.0.1:1"],
    "refused before anything is sent",
  );
  const answered = async (when: string, state: Record<string, boolean>) => {
    const result = { session_id: "s", stdout: "", stderr: "", code: 0, files: [], ...state };
    await answering(200, JSON.stringify(result), {}, (url) =>
      run(["exec", "-c", "1", "--session", "draft", "--url", url], when),
    );
  };
  await answered("the service keeps no sessions", {});
  await answered("another run ended first", {
    session_state_persisted: false,
    session_state_restore_failed: false,
    session_state_conflict: true,
  });
  await answered("the state of the session is damaged", {
    session_state_persisted: false,
    session_state_restore_failed: true,
  });
  await answered("a limit ended the run", {
    session_state_persisted: false,
    session_state_restore_failed: false,
  });
  await told.expectAs("exec");
});

it("exec: files that a program made", async () => {
  const result = {
    session_id: "s",
    stdout: "done\n",
    stderr: "",
    code: 0,
    files: [{ id: "i", name: "plot.png", storage_session_id: "s" }],
  };
  await answering(200, JSON.stringify(result), {}, async (url) => {
    const exec = ["exec", "-c", "1", "--url", url];
    await run(exec, "the program made a file");
    await run([...exec, "--out", "."]);
    await run([...exec, "--out", "."], "once more");
    await run([...exec, "--out", ".", "--force"]);
    rmSync(join(folder, "plot.png"));
    mkdirSync(join(folder, "plot.png"));
    await run([...exec, "--out", ".", "--force"], "a folder of that name is there");
    await run([...exec, "--out", file("taken", "")]);
    await run([...exec, "--out", "/proc"], "a folder that takes no files");
  });
  const named = (name: string) => JSON.stringify({ ...result, files: [{ ...result.files[0], name }] });
  await answering(200, named("../up"), {}, (url) =>
    run(["exec", "-c", "1", "--url", url, "--out", "."], "a service that cannot be trusted"),
  );
  symlinkSync("/tmp", join(folder, "link"));
  await answering(200, named("link/file"), {}, (url) =>
    run(["exec", "-c", "1", "--url", url, "--out", "."], "a link is in the way"),
  );
  await told.expectAs("exec-files");
});

it("key", async () => {
  await run(["key"]);
  await run(["key", "add"]);
  await run(["key", "revoke"]);
  await run(["key", "list"], "no key yet");
  await run(["key", "add", "\u0007"], "a name with a control character");
  await run(["key", "add", "ci", "--expires", "soon"]);
  expect(await run(["key", "add", "laptop", "--plan", "pro", "--expires", "90d"], "nothing runs")).toBe(0);
  await run(["key", "list"]);
  await run(["key", "list", "--json"]);
  await run(["key", "revoke", "nobody"]);
  const [record] = readFileSync(join(dataDir, "api-keys.jsonl"), "utf8").split("\n");
  const { id } = JSON.parse(record ?? "") as { id: string };
  await run(["key", "revoke", id]);
  await run(["key", "revoke", id], "once more");
  await run(
    ["key", "add", "tablet", "--settings", file("other.env", "")],
    "the settings are in another file",
  );
  const keys = join(dataDir, "api-keys.jsonl");
  chmodSync(keys, 0o644);
  await run(["key", "list"], "others may read the file");
  chmodSync(keys, 0o600);
  writeFileSync(keys, "no key\n");
  await run(["key", "add", "phone"], "the file is broken");
  rmSync(keys);
  mkdirSync(keys, { mode: 0o700 });
  await run(["key", "list"], "a folder is in its place");
  await told.expectAs("key");
});

it("key: its help", async () => {
  for (const action of ["add", "list", "revoke"]) await run(["key", action, "--help"]);
  await told.expectAs("key-help");
});

it("token", async () => {
  await run(["token"]);
  await run(["token", "--user", "u1", "--ttl", "301"]);
  await run(["token", "--user", "u1"], "nothing runs, and no API is told of the keys");
  await run(["token", "--user", "u1"], "nothing runs", {
    SVC_JWT_PUBLIC_KEYS_DIR: join(dataDir, "jwt-keys"),
  });
  await run(["token", "--user", "u1"], "the API reads another folder", {
    SVC_JWT_PUBLIC_KEYS_DIR: join(folder, "elsewhere"),
  });
  const key = join(dataDir, "token-key.pem");
  chmodSync(key, 0o644);
  await run(["token", "--user", "u1"], "others may read the private key");
  writeFileSync(key, "no key");
  chmodSync(key, 0o600);
  await run(["token", "--user", "u1"], "the private key is broken");
  await told.expectAs("token");
});

it("librechat", async () => {
  await run(["librechat"], "nothing runs");
  await run(["librechat", "--shared-key"], "nothing runs");
  const other = file("other.env", "SVC_JWT_MAX_TTL_SECONDS=120\n");
  await run(["librechat", "--settings", other], "the settings are in another file, and tokens live shorter");
  await run(["librechat", "--base-url", "chat.example.com"]);
  await run(["librechat", "--base-url", "https://chat.example.com?x"]);
  await run(["librechat", "--url", "http://127.0.0.1:1"], "nothing listens there");
  await answering(200, "{}", {}, (url) =>
    run(["librechat", "--url", `http://${url}`], "the API asks nobody for a credential"),
  );
  const server = createServer((request, response) => {
    if (request.method === "POST") request.destroy();
    else response.writeHead(request.headers.authorization === undefined ? 401 : 404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `127.0.0.1:${(server.address() as { port: number }).port}`;
  await run(
    ["librechat", "--url", url],
    "it takes the token, and breaks the connection when a program comes",
  );
  server.close();
  await told.expectAs("librechat");
});

it("logs", async () => {
  await run(["logs"], "nothing was ever started");
  await run(["logs", "wroker"]);
  await run(["logs", "nothing"]);
  await run(["logs", "--request", "a b"]);
  mkdirSync(join(dataDir, "logs"));
  const line = {
    level: 40,
    time: "2026-11-25T10:00:00.000Z",
    name: "api",
    msg: "a warning",
    request_id: "r1",
  };
  writeFileSync(join(dataDir, "logs/api.log"), `${JSON.stringify(line)}\n`);
  await run(["logs"], "the API has logged a line");
  await run(["logs", "--request", "r2"]);
  await told.expectAs("logs");
});

it("status, restart and down", async () => {
  for (const command of ["status", "restart", "down"]) await run([command], "nothing runs");
  await run(["status", "--json"], "nothing runs");
  const other = ["--data-dir", dataDir, "--port-offset", "100", "--settings", file("other.env", "")];
  for (const command of ["status", "restart", "logs"])
    await run([command, ...other], "nothing runs of another copy");
  await told.expectAs("nothing-runs");
});

it("status: a copy that an older ./svc started", async () => {
  mkdirSync(join(dataDir, "run"));
  const state = {
    version: 1,
    supervisor: identify(process.pid),
    phase: "running",
    ports: {},
    components: [],
  };
  writeFileSync(join(dataDir, "run/state.json"), JSON.stringify(state));
  await run(["status"]);
  await told.expectAs("older-copy");
});

it("settings", async () => {
  const config = (settings: Record<string, string>, when = "") =>
    told.run(
      ["config", "--json"],
      when ||
        Object.entries(settings)
          .map((pair) => pair.join("="))
          .join(" "),
      {
        env: { ...env(), ...settings },
      },
    );
  const refused = [
    { SERVICE_PORT: "http" },
    { SERVICE_PORT: "2000" },
    { SANDBOX_JOB_UID_BASE: "1" },
    { SVC_DATA_DIR: join(folder, "x".repeat(120)) },
    { SVC_SETTINGS_FILE: join(folder, "missing.env") },
    { SVC_SETTINGS_FILE: folder },
    { SVC_SETTINGS_FILE: file("line.env", "A=1\nB") },
    { SVC_SETTINGS_FILE: file("chain.env", "SVC_SETTINGS_FILE=x") },
    { SVC_SETTINGS_FILE: file("large.env", "#".repeat(2 ** 20 + 1)) },
  ];
  for (const settings of refused) expect(await config(settings)).toBe(1);
  writeFileSync(join(folder, "latin1.env"), Buffer.from("LOG_LEVEL=\xe4", "latin1"));
  await config({ SVC_SETTINGS_FILE: join(folder, "latin1.env") });
  writeFileSync(join(dataDir, "svc.env"), "SVC_DATA_DIR=/elsewhere\n");
  await told.run(["config", "--data-dir", dataDir], "the settings file of a data folder names another one");
  rmSync(join(dataDir, "svc.env"));
  await run(["status", "--port-offset", "65000"]);
  await run(["status"], "SANDBOX_JOB_UID_BASE=1", { SANDBOX_JOB_UID_BASE: "1" });
  await run(["status", "--port-offset", "60000"], "SERVICE_PORT=9000", { SERVICE_PORT: "9000" });
  await told.expectAs("settings");
});

it("doctor", async () => {
  const packages = join(folder, "pkgs");
  mkdirSync(packages);
  const found = async (
    when: string,
    subjects: readonly string[],
    more: Record<string, string>,
    ...args: string[]
  ) => {
    const all = { ...env(), SANDBOX_PACKAGES_DIRECTORY: packages, ...more };
    const { stdout } = await runSvc(["doctor", "--json", ...args], { env: all });
    const { ok, checks: findings } = JSON.parse(stdout) as { ok: boolean; checks: Finding[] };
    expect(ok).toBe(!findings.some(({ grade }) => grade === "fail"));
    for (const subject of subjects) {
      // Other ports may be taken on this machine, too.
      const own = findings.filter(
        (each) => each.subject === subject && !/\((?!api)[\w-]+\) is taken/.test(each.note),
      );
      await told.add(when, () =>
        own
          .map(shownFinding)
          .join("\n")
          .replace(/JOBS=\d+/, "JOBS=N")
          .replace(/\d+ \(api\)/, "PORT (api)"),
      );
    }
  };
  await answering(200, "", {}, async (url) => {
    const wrong = {
      MAX_REQUESTS: "many",
      PTC_MODE: "x",
      MAX_REQUEST: "5",
      SERVICE_PORT: url.split(":")[1] ?? "",
    };
    await found("nothing is right", ["redis", "image", "settings", "ports", "service"], {
      ...wrong,
      REDIS_URL: "redis://127.0.0.1:6379",
    });
  });
  await found("a data folder that cannot be made", ["data folder"], {}, "--data-dir", "/proc/svc");
  const runtimes = [{ language: "python", version: "3.13" }];
  mkdirSync(join(dataDir, "image"));
  writeFileSync(join(dataDir, "image/runtimes.json"), JSON.stringify({ runtimes }));
  const subjects = ["image", "image packages", "capacity"];
  await found("more slots than fit", subjects, { SANDBOX_MAX_CONCURRENT_JOBS: "512" });
  await found("slots that fit", ["capacity"], {
    SANDBOX_MAX_CONCURRENT_JOBS: "2",
    SANDBOX_WORKSPACE_MAX_BYTES: "1000000",
    SANDBOX_RUN_MEMORY_LIMIT: "64000000",
  });
  await told.expectAs("doctor");
});
