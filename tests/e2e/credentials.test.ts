/** Credentials as an operator makes them with ./svc, and a copy that asks for them. */
import { createPrivateKey } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { runsIn } from "@svc/cli/topology";
import { userOf } from "@svc/cli/users";
import { signerOf } from "@svc/test-kit/credentials/signer";
import { Api } from "@svc/test-kit/system/api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

const KEY = /^svc_[A-Za-z0-9_-]{43}\n$/;
const UNAUTHORIZED = {
  error: "unauthorized",
  message: "Send a valid access token: Authorization: Bearer <token>, see docs/authentication.md",
};

let folder: PrivateFolder;
let system: System;
let env: Record<string, string | undefined>;
/** Made before the copy was started. */
let first: { key: string; id: string };
let file: string;

/** The value of a setting among printed lines. */
function setting(name: string, printed: string): string {
  const [, value = ""] = new RegExp(`^${name}="?(.*?)"?$`, "m").exec(printed) ?? [];
  expect([name, value]).not.toEqual([name, ""]);
  return value;
}

async function addKey(...args: string[]): Promise<{ key: string; id: string; said: string }> {
  const { code, stdout, stderr } = await svc(["key", "add", ...args], env);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  expect(stdout).toMatch(KEY);
  expect(stderr).not.toContain(stdout.trim());
  return { key: stdout.trim(), id: /^API key (\w+) /.exec(stderr)?.[1] ?? "", said: stderr };
}

const hello = { lang: "bash", code: "echo hello" };
async function statusWith(headers: Record<string, string>): Promise<number> {
  return (await new Api(system.url).post("/exec", hello, { headers })).status;
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

beforeAll(async () => {
  folder = await privateFolder();
  // No component can look into this folder.
  const closed = join(folder.instance.dataDir, "closed");
  mkdirSync(closed, { mode: 0o700 });
  file = join(closed, "keys.jsonl");
  env = { ...folder.environment, SVC_API_KEYS_FILE: file };
  const added = await addKey("laptop", "--tenant", "t1", "--user", "alice", "--expires", "90d");
  expect(added.said).toContain("It is not shown again");
  expect(added.said).toContain("Start it: ./svc up -d");
  first = added;
  const { code, stdout, stderr } = await svc(["librechat"], env);
  expect([code, stderr]).toEqual([1, expect.stringContaining("No copy of this data folder runs.")]);
  env = {
    ...env,
    SVC_JWT_PUBLIC_KEYS_DIR: setting("SVC_JWT_PUBLIC_KEYS_DIR", stdout),
    SVC_JWT_KEY_CACHE_TTL_SECONDS: "1",
    SVC_JWT_MAX_TTL_SECONDS: "120",
  };
  system = await startSystem({ env: env as Record<string, string> });
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
  folder.remove();
});

test("a copy with keys asks for a credential, and says where to read", async () => {
  for (const headers of [{}, bearer("svc_"), { "x-api-key": "k" }]) {
    const answer = await new Api(system.url).post("/exec", hello, { headers });
    expect([answer.status, answer.json()]).toEqual([401, expect.objectContaining(UNAUTHORIZED)]);
  }
  expect((await fetch(`${system.url}/health`)).status).toBe(200);
});

describe("an API key", () => {
  test("is accepted in both headers", async () => {
    expect(await statusWith(bearer(first.key))).toBe(200);
    expect(await statusWith({ "x-api-key": first.key })).toBe(200);
  });

  test("is read by the API's own user, though its file and the folder belong to root", async () => {
    const name = system.state().components.find((process) => runsIn(process.name, "api"))?.name;
    const lent = statSync(join(system.instance.runDir, "api-keys.jsonl"));
    expect([lent.uid, lent.mode & 0o777]).toEqual([userOf(name as "api", system.instance).uid, 0o600]);
    expect([statSync(file).uid, statSync(file).mode & 0o777]).toEqual([0, 0o600]);
    expect(readFileSync(file, "utf8")).not.toContain(first.key.slice(4));
  });

  test("is added and revoked while the copy runs", async () => {
    const pid = system.pid("api");
    const { key, id, said } = await addKey("ci", "--plan", "pro");
    expect(said).toContain(`The API at ${system.instance.url} accepts it.`);
    expect(said).toContain("SVC_PLAN_LIMITS has no plan pro");
    expect(await statusWith({ "x-api-key": key })).toBe(200);
    expect(await svc(["key", "revoke", id], env)).toMatchObject({ code: 0, stderr: `Revoked: ${id}\n` });
    await expect.poll(() => statusWith({ "x-api-key": key })).toBe(401);
    expect(await statusWith({ "x-api-key": first.key })).toBe(200);
    expect(system.pid("api")).toBe(pid);
    const { stdout } = await svc(["key", "list"], env);
    expect(stdout).toMatch(new RegExp(`^${first.id} +laptop +t1 +alice +- .* active$`, "m"));
    expect(stdout).toMatch(new RegExp(`^${id} +ci +main +ci +pro +\\S+ +never +revoked$`, "m"));
    const listed = JSON.parse((await svc(["key", "list", "--json"], env)).stdout);
    expect(listed).toMatchObject({
      file,
      keys: [
        { id: first.id, name: "laptop", tenant: "t1", user: "alice", state: "active" },
        { id, plan: "pro", state: "revoked", revoked_at: expect.any(String) },
      ],
    });
    expect(JSON.stringify(listed)).not.toContain("sha256");
    expect(await svc(["key", "revoke", "nobody"], env)).toMatchObject({ code: 1 });
  });
});

test("./svc token prints a token that the copy accepts", async () => {
  const { code, stdout } = await svc(["token", "--user", "bob", "--tenant", "t1"], env);
  expect(code).toBe(0);
  // A key pair that is made while the copy runs is read within SVC_JWT_KEY_CACHE_TTL_SECONDS.
  await expect.poll(() => statusWith(bearer(stdout.trim()))).toBe(200);
  const again = await svc(["token", "--user", "bob", "--ttl", "60"], env);
  expect(again.stderr).toContain("User bob of tenant main, for 60 s.");
  expect(again.stderr).toContain("accepts it");
  expect(await svc(["token", "--user", "bob", "--ttl", "301"], env)).toMatchObject({ code: 2 });
});

describe("./svc librechat", () => {
  test("prints settings that work with a request signed as LibreChat signs it", async () => {
    const { code, stdout, stderr } = await svc(["librechat"], env);
    expect([code, stderr]).toEqual([0, expect.stringContaining("A program ran for a user of LibreChat.")]);
    expect(setting("LIBRECHAT_CODE_BASEURL", stdout)).toBe(system.url);
    expect(setting("SVC_JWT_PUBLIC_KEYS_DIR", stdout)).toBe(env.SVC_JWT_PUBLIC_KEYS_DIR);
    const pem = setting("CODEAPI_JWT_PRIVATE_KEY", stdout).replaceAll("\\n", "\n");
    const now = Math.floor(Date.now() / 1000);
    const signed = signerOf(createPrivateKey(pem)).mint({
      header: { kid: setting("CODEAPI_JWT_KID", stdout) },
      claims: {
        iss: setting("CODEAPI_JWT_ISSUER", stdout),
        aud: setting("CODEAPI_JWT_AUDIENCE", stdout),
        tenant_id: setting("CODEAPI_JWT_SINGLE_TENANT_ID", stdout),
        exp: now + Number(setting("CODEAPI_JWT_TTL_SECONDS", stdout)),
      },
    });
    expect(await statusWith(bearer(signed))).toBe(200);
  });

  test("with --shared-key prints a key that works as LibreChat sends it", async () => {
    const { code, stdout, stderr } = await svc(["librechat", "--shared-key"], env);
    expect([code, stderr]).toEqual([0, expect.stringContaining("A program ran for a user of LibreChat.")]);
    expect(setting("SVC_API_KEYS_FILE", stdout)).toBe(file);
    expect(await statusWith({ "x-api-key": setting("LIBRECHAT_CODE_API_KEY", stdout) })).toBe(200);
  });
});
