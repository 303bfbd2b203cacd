/** The API as a process: what it says when it cannot know its callers. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { builtBundle } from "@svc/test-kit/components/component";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { afterAll, expect, test } from "vitest";

const MAIN = await builtBundle("api");
const PRIVATE = newSigner().privateKey.export({ type: "pkcs8", format: "pem" }) as string;

const folder = mkdtempSync(join(tmpdir(), "svc-test-start-"));
afterAll(() => rmSync(folder, { recursive: true }));
const OPEN_FILE = join(folder, "open.jsonl");
writeFileSync(OPEN_FILE, "", { mode: 0o644 });

function start(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const settings = { SVC_INTERNAL_SERVICE_TOKEN: newSecret(), REDIS_URL: "unix:/nonexistent", ...env };
  return new Promise((resolve) => {
    const child = execFile(NODE, [MAIN], { env: settings, timeout: 20_000 }, (_error, out, err) =>
      resolve({ code: child.exitCode, output: out + err }),
    );
  });
}

test.each([
  [{}, "no key that verifies access tokens (EdDSA)"],
  [{ SVC_AUTH_PROVIDER: "librechat-jwt", LOCAL_MODE: "false" }, "no key that verifies access tokens (EdDSA)"],
  [{ SVC_AUTH_PROVIDER: "password" }, "SVC_AUTH_PROVIDER must be one of librechat-jwt, none"],
  [{ SVC_AUTH_PROVIDER: "none", SERVICE_HOST: "0.0.0.0" }, "needs a loopback SERVICE_HOST"],
  [{ SVC_JWT_PUBLIC_KEY: PRIVATE, SVC_JWT_KID: "k" }, "SVC_JWT_PUBLIC_KEY is a private key"],
  [{ SVC_API_KEYS_FILE: OPEN_FILE }, `SVC_API_KEYS_FILE ${OPEN_FILE} can be read by others; run: chmod 600`],
  [{ SVC_API_KEYS_FILE: "/nonexistent/keys" }, "does not exist; ./svc key add NAME makes it"],
])("%j stops it as a wrong configuration", async (env, problem) => {
  const { code, output } = await start(env);
  expect(code).toBe(78);
  expect(output).toContain(problem);
  expect(output).not.toContain(PRIVATE.split("\n")[1]);
});

test("what is wrong with tokens and with API keys is told together", async () => {
  const { code, output } = await start({
    SVC_JWT_PUBLIC_KEY: PRIVATE,
    SVC_JWT_KID: "k",
    SVC_API_KEYS_FILE: "/nonexistent/keys",
  });
  expect([code, output]).toEqual([78, expect.stringContaining("SVC_JWT_PUBLIC_KEY is a private key")]);
  expect(output).toContain("/nonexistent/keys does not exist");
});
