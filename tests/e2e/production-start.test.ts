/** Outside local mode: every component as a process, and what it says of secrets that are missing, weak or published. */
import { execFile } from "node:child_process";
import { createPrivateKey, createPublicKey, randomBytes } from "node:crypto";
import { NODE } from "@svc/cli/components";
import { SERVICES, type Service } from "@svc/cli/instance";
import { builtBundle } from "@svc/test-kit/components/component";
import { describe, expect, test } from "vitest";

const CONFIGURATION = 78;

async function start(
  service: Service,
  env: Record<string, string>,
): Promise<{ code: number | null; said: string }> {
  const main = await builtBundle(service);
  const options = { env: { REDIS_URL: "unix:/nonexistent", ...env }, timeout: 30_000 };
  return new Promise((resolve) => {
    const child = execFile(NODE, [main], options, (_error, out, err) =>
      resolve({ code: child.exitCode, said: out + err }),
    );
  });
}

/** RFC 8032, section 7.1, test 1. */
const PUBLISHED = createPrivateKey({
  key: Buffer.from(
    "302e020100300506032b6570042204209d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "hex",
  ),
  format: "der",
  type: "pkcs8",
});
const published = {
  private: PUBLISHED.export({ format: "der", type: "pkcs8" }).toString("base64"),
  public: createPublicKey(PUBLISHED).export({ format: "pem", type: "spki" }) as string,
};

const TOKEN = ["SVC_INTERNAL_SERVICE_TOKEN"];
const NEEDS: Record<Service, readonly string[]> = {
  api: TOKEN,
  worker: [...TOKEN, "SVC_EXECUTION_MANIFEST_PRIVATE_KEY"],
  runner: ["SANDBOX_FORWARD_TARGET", "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"],
  "file-server": TOKEN,
  "tool-call-server": TOKEN,
  "egress-gateway": [...TOKEN, "SVC_EGRESS_GRANT_SECRET"],
};
/** A value that is not to be taken, for each variable of a secret. */
const UNFIT: Record<string, string> = {
  SVC_INTERNAL_SERVICE_TOKEN: "hunter2hunter2hunter2hunter2hunter2hunter2",
  SVC_EGRESS_GRANT_SECRET: randomBytes(15).toString("hex"),
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: published.private,
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: published.public,
  SANDBOX_FORWARD_TARGET: "gateway:3190",
};

describe.each(SERVICES)("the %s", (service) => {
  test("does not start without its own secrets, and names each", async () => {
    const { code, said } = await start(service, {});
    expect(code).toBe(CONFIGURATION);
    for (const name of NEEDS[service]) expect(said).toContain(`${name} is required by the ${service}`);
    expect(said.match(/is required/g)).toHaveLength(NEEDS[service].length);
  });

  test("does not start with secrets that protect nothing, and shows none of them", async () => {
    const { code, said } = await start(service, UNFIT);
    expect(code).toBe(CONFIGURATION);
    expect(said).toMatch(/SVC_INTERNAL_SERVICE_TOKEN can be guessed/);
    expect(said).toMatch(/SVC_EGRESS_GRANT_SECRET must have at least 32 bytes/);
    expect(said).toMatch(/SVC_EXECUTION_MANIFEST_PRIVATE_KEY is published/);
    expect(said).toMatch(/SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY is published/);
    for (const [name, value] of Object.entries(UNFIT)) {
      if (name !== "SANDBOX_FORWARD_TARGET") expect(said).not.toContain(value.slice(0, 20));
    }
  });
});

test("the api does not start without a key of the token signer, and not with a published one", async () => {
  const token = { SVC_INTERNAL_SERVICE_TOKEN: randomBytes(32).toString("hex") };
  const without = await start("api", token);
  expect([without.code, without.said]).toEqual([
    CONFIGURATION,
    expect.stringContaining("no key that verifies"),
  ]);
  const { code, said } = await start("api", {
    ...token,
    SVC_JWT_PUBLIC_KEY: published.public,
    SVC_JWT_KID: "k",
  });
  expect([code, said]).toEqual([CONFIGURATION, expect.stringContaining("SVC_JWT_PUBLIC_KEY is published")]);
});
