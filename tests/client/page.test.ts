/** docs/librechat.md from top to bottom in a fresh clone, with LibreChat's own client at the end. */
import { generateKeyPairSync } from "node:crypto";
import { appendFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { NODE } from "@svc/cli/components";
import { ROOT } from "@svc/cli/instance";
import { codeOf, readPage } from "@svc/test-kit/programs/page";
import { Api } from "@svc/test-kit/system/api";
import { type FreshClone, freshClone, type Said } from "@svc/test-kit/system/fresh-clone";
import { startOtherMachine } from "@svc/test-kit/system/other-machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation } from "./support/conversation.ts";
import { hostTool } from "./support/host-tool.ts";
import { type DotEnv, type Headers, type LibreChat, libreChat, signed } from "./support/librechat.ts";

const PAGE = readPage("docs/librechat.md");
const NOT_AUTHORIZED = "Code execution is not authorized. Verify access before trying again.";
const UNAUTHORIZED = { error: "unauthorized", message: expect.stringContaining("docs/authentication.md") };
const DONE = { code: 0 };

/** The lines that ./svc librechat printed for a file, and the file's name. */
function printedFor(place: RegExp, { stdout }: Said): { file: string; lines: string } {
  const [, file = "", lines = ""] =
    new RegExp(`^# \\d\\. (${place.source}).*\\n((?:.+\\n)+)`, "m").exec(stdout) ?? [];
  expect([place.source, lines]).not.toEqual([place.source, ""]);
  return { file, lines };
}

/** Puts the second block where the first command says, and answers the first block. */
function copyBlocks(said: Said): string {
  const here = printedFor(/\/\S+\/svc\.env/, said);
  appendFileSync(here.file, here.lines, { mode: 0o600 });
  return printedFor(/\.env of LibreChat/, said).lines;
}

/** Runs the first two steps of a section where nothing runs yet. Answers the lines for LibreChat's .env. */
async function connect(
  { run }: FreshClone,
  { make, start, mode }: { make: string; start: string; mode: string },
): Promise<string> {
  const made = await run(make);
  expect(made).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("No copy of this data folder runs."),
  });
  const dotEnv = copyBlocks(made);
  const started = await run(start);
  expect(started, started.stderr).toMatchObject(DONE);
  expect(started.stdout).toMatch(new RegExp(`^Ready: .*\\(authentication: ${mode}\\)$`, "m"));
  return dotEnv;
}

const talk = (chat: LibreChat, user: string, ...tools: ReturnType<typeof hostTool>[]) =>
  new Conversation({ url: chat.baseUrl, headers: () => chat.headers(user), tools });

const add = () =>
  hostTool("add", ({ a, b }) => Number(a) + Number(b), { properties: { a: "number", b: "number" } });

async function expectEverythingToWork(chat: LibreChat): Promise<void> {
  expect((await talk(chat, "ada").python("print(6 * 7)")).text).toBe("stdout:\n42");
  const tool = add();
  const talking = talk(chat, "ada", tool);
  const reply = await talking.pythonWithTools("print(await add(a=1, b=await add(a=2, b=3)))");
  expect([reply.text, tool.inputs.length, talking.requests]).toEqual(["stdout:\n6", 2, 3]);
  const inBash = talk(chat, "ada", add());
  expect((await inBash.bashWithTools(`add '{"a": 1, "b": 2}'`)).text).toBe("stdout:\n3");
}

/** What the model reads, what a person reads who tries it by hand, and what the log says. */
async function expectRefusal(clone: FreshClone, headers: Headers, cause: string): Promise<void> {
  const url = `${clone.instance.url}/v1`;
  const chat = new Conversation({ url, headers: () => headers });
  const reply = await chat.python("print(1)");
  expect([reply.failed, reply.text]).toEqual([true, expect.stringContaining(NOT_AUTHORIZED)]);
  const answer = await new Api(url).tryExec({ lang: "py", code: "print(1)" }, { headers });
  expect([answer.status, answer.json()]).toEqual([401, expect.objectContaining(UNAUTHORIZED)]);
  await expect.poll(() => loggedCauses(clone)).toContainEqual([answer.refusal.request_id, cause]);
}

/** By the command of the page. */
async function loggedCauses({ run }: FreshClone): Promise<[id: string, cause: string][]> {
  const [command = ""] = codeOf(
    PAGE.rows("Verify").find(([question]) => question?.includes("requests"))?.[1],
  );
  const { stdout } = await run(command);
  const lines = stdout.split("\n").filter(Boolean);
  return lines
    .map((line) => JSON.parse(line) as { request_id: string; cause: string })
    .map(({ request_id, cause }) => [request_id, cause]);
}

const past = (seconds: number) => Math.floor(Date.now() / 1000) - seconds;
const otherKey = () => generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });

/** For each cause of a 401 in the table of the page: a request that has it. `env`: LibreChat's settings as they should be. */
const OF_TOKENS: Record<string, (env: DotEnv) => Headers> = {
  "no Authorization header": () => ({}),
  'unknown kid "lc-codeapi-2026-05"': (env) => signed({ ...env, CODEAPI_JWT_KID: undefined }, "ada"),
  "bad signature": (env) => signed({ ...env, CODEAPI_JWT_PRIVATE_KEY: `${otherKey()}` }, "ada"),
  "another issuer": (env) => signed({ ...env, CODEAPI_JWT_ISSUER: "chat" }, "ada"),
  "another audience": (env) => signed({ ...env, CODEAPI_JWT_AUDIENCE: "chat" }, "ada"),
  expired: (env) => signed(env, "ada", { iat: past(900), nbf: past(900), exp: past(600) }),
  "not valid yet": (env) => signed(env, "ada", { nbf: past(-120) }),
  "issued in the future": (env) => signed(env, "ada", { iat: past(-120) }),
  "lives too long": (env) => signed({ ...env, CODEAPI_JWT_TTL_SECONDS: "3600" }, "ada"),
  "no tenant": (env) => signed(env, "ada", { tenant_id: undefined }),
  "Authorization and X-API-Key carry different credentials": (env) => ({
    ...signed(env, "ada"),
    "X-API-Key": WRONG_KEY,
  }),
};
const WRONG_KEY = `svc_${"A".repeat(43)}`;
const OF_KEYS = ["unknown API key", "the API key … is revoked"];

test("the table of errors has no cause of a 401 that these tests do not provoke", () => {
  const told = PAGE.rows("What goes wrong")
    .filter(([seen]) => seen === "401")
    .flatMap(([, causes]) => codeOf(causes));
  expect(told.sort()).toEqual([...Object.keys(OF_TOKENS), ...OF_KEYS].sort());
});

describe("signed tokens", () => {
  const [make = "", start = "", verify = "", ...others] = PAGE.blocks("sh", "Signed tokens");
  let clone: FreshClone;
  let dotEnv: string;

  beforeAll(async () => {
    clone = await freshClone();
  });
  afterAll(async () => {
    expect(await clone.remove()).toMatchObject(DONE);
  });

  test("the steps of the page connect LibreChat, and say themselves when that is so", async () => {
    expect(others).toEqual([]);
    dotEnv = await connect(clone, { make, start, mode: "1 JWT key" });
    const verified = await clone.run(verify);
    expect(verified).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/A program ran for a user of LibreChat\.\n$/),
    });
    expect(printedFor(/\.env of LibreChat/, verified).lines).toBe(dotEnv);
  });

  test("the client runs programs and calls tools, and files are each user's own", async () => {
    const chat = libreChat(parseEnv(dotEnv));
    await expectEverythingToWork(chat);
    const ada = talk(chat, "ada");
    await ada.bash("echo mine > mine.txt");
    const bob = talk(chat, "bob");
    bob.attach(ada.files);
    expect((await bob.bash("cat mine.txt")).text).toContain(NOT_AUTHORIZED);
    expect((await ada.bash("cat mine.txt")).text).toBe("stdout:\nmine");
  });

  test.each(Object.entries(OF_TOKENS))(
    "a request is refused and the log says: %s",
    async (cause, headers) => {
      await expectRefusal(clone, headers(parseEnv(dotEnv)), cause);
    },
  );

  test("a LibreChat that sees this machine as a container does reaches it by the name of the page", async () => {
    const [name = ""] =
      /host\.docker\.internal/.exec(PAGE.blocks("yaml", "LibreChat in Docker").join()) ?? [];
    const container = await startOtherMachine([name]);
    try {
      const [bridge = ""] = PAGE.blocks("sh", "LibreChat in Docker");
      appendFileSync(join(clone.dataDir, "svc.env"), bridge.replace("172.17.0.1", container.here));
      const started = await clone.run(start);
      expect(started, started.stderr).toMatchObject(DONE);
      const address = `http://${name}:${clone.instance.ports.api}`;
      const said = await clone.run(`./svc librechat --base-url ${address}`);
      expect(said, said.stderr).toMatchObject(DONE);
      const env = { ...parseEnv(printedFor(/\.env of LibreChat/, said).lines) } as Record<string, string>;
      expect(env.LIBRECHAT_CODE_BASEURL).toBe(`${address}/v1`);
      const inside = (command: string) =>
        container.run(["sh", "-c", `PATH=${dirname(NODE)}:$PATH; ${command}`], env);
      const row = PAGE.rows("Verify").find(([question]) => question?.includes("LibreChat reach"));
      const [check = ""] = codeOf(row?.[1]);
      expect((await inside(check.replace("docker compose exec api ", ""))).stdout).toBe("200\n");
      const asked = await inside(`node ${join(ROOT, "tests/client/support/one-request.ts")}`);
      expect(asked.stdout, asked.stderr).toContain("stdout:\n42");
    } finally {
      await container.remove();
    }
  });
});

describe("a shared key", () => {
  const [make = "", start = "", verify = "", ...others] = PAGE.blocks("sh", "Shared key");
  let clone: FreshClone;
  let dotEnv: string;

  beforeAll(async () => {
    clone = await freshClone();
  });
  afterAll(async () => {
    expect(await clone.remove()).toMatchObject(DONE);
  });

  test("the steps of the page connect LibreChat, and a request with the key shows it", async () => {
    expect(others).toEqual([]);
    dotEnv = await connect(clone, { make, start, mode: "1 API key" });
    const answer = await clone.run(verify, { ...parseEnv(dotEnv) } as Record<string, string>);
    expect(JSON.parse(answer.stdout)).toMatchObject({ stdout: "42\n" });
  });

  test("the client runs programs and calls tools, and files are those of all users", async () => {
    const chat = libreChat(parseEnv(dotEnv));
    await expectEverythingToWork(chat);
    const ada = talk(chat, "ada");
    await ada.bash("echo ours > ours.txt");
    const bob = talk(chat, "bob");
    bob.attach(ada.files);
    expect((await bob.bash("cat ours.txt")).text).toBe("stdout:\nours");
  });

  test("another key is refused, and so is one that was revoked", async () => {
    await expectRefusal(clone, { "X-API-Key": WRONG_KEY }, "unknown API key");
    const added = await clone.run("./svc key add laptop");
    const [, id = ""] = /^API key (\w+) /.exec(added.stderr) ?? [];
    const headers = { "X-API-Key": added.stdout.trim() };
    expect(await clone.run(`./svc key revoke ${id}`)).toMatchObject(DONE);
    const status = async () =>
      (await new Api(`${clone.instance.url}/v1`).send("GET", "/files/aaaaaaaaaaaaaaaaaaaaa", { headers }))
        .status;
    await expect.poll(status).toBe(401);
    await expectRefusal(clone, headers, `the API key ${id} is revoked`);
  });
});
