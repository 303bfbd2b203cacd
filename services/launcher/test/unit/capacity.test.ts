import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MICROVM_OVERHEAD_MIB } from "@svc/cli/capacity";
import { jaildCommand } from "@svc/cli/components";
import { containerInstance } from "@svc/cli/containers/place";
import { loadConfig } from "@svc/service-kit/config/load";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { expect, onTestFinished, test } from "vitest";
import { guestCapacity } from "../../src/guests/capacity.ts";
import { guestEnvironment } from "../../src/guests/environment.ts";

const settings = {
  LAUNCHER_RAM_MIB: 1024,
  LAUNCHER_MEMORY_MIB: 0,
  LAUNCHER_POOL_SIZE: 2,
  SANDBOX_MAX_CONCURRENT_JOBS: 8,
  SANDBOX_MAX_PAUSED: 32,
};
const each = settings.LAUNCHER_RAM_MIB + MICROVM_OVERHEAD_MIB;

test("guests, running and paused, fit into the memory together", () => {
  for (const fits of [1, 2, 3, 7, 12, 100]) {
    const { most, slots, paused } = guestCapacity(settings, fits * each + 1);
    expect(most).toBeLessThanOrEqual(fits);
    expect(slots + paused).toBeLessThanOrEqual(most);
    expect(slots).toBeGreaterThan(0);
  }
  expect(guestCapacity(settings, 100 * each)).toEqual({ most: 42, slots: 8, paused: 32 });
});

test("what the configuration says counts, not what the machine has", () => {
  expect(guestCapacity({ ...settings, LAUNCHER_MEMORY_MIB: 3 * each }, 100 * each).most).toBe(3);
});

test("memory for no guest at all is an error that says what one takes", () => {
  expect(() => guestCapacity(settings, each - 1)).toThrow(`${each} MiB`);
});

test("a guest gets limits, and no key, token or address of this machine", () => {
  const secrets = {
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
    SVC_METRICS_TOKEN: newSecret(),
    SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
  };
  const overrides = { python: { run_memory_limit: 2 ** 28 } };
  const ofJaild = {
    SANDBOX_WORKSPACE_MAX_BYTES: "8388608",
    SANDBOX_WORKSPACE_MAX_FILES: "200",
    SANDBOX_TMP_MAX_BYTES: "1048576",
    TOOL_CALL_REQUEST_TIMEOUT: "20000",
    SANDBOX_WARM_START: "false",
    SANDBOX_WARM_POOL: "3",
  };
  const env = guestEnvironment(
    loadConfig("launcher", {
      ...secrets,
      ...ofJaild,
      SANDBOX_RUN_TIMEOUT: "1234",
      SVC_LANGUAGES: "python,bash",
      SANDBOX_LIMIT_OVERRIDES: JSON.stringify(overrides),
    }),
  );
  for (const secret of Object.values(secrets)) expect(Object.values(env)).not.toContain(secret);
  expect(env).toMatchObject(ofJaild);
  expect(env).toMatchObject({ SANDBOX_RUN_TIMEOUT: "1234", SVC_LANGUAGES: "python,bash" });
  const inside = loadConfig("runner", env);
  expect(inside.SANDBOX_LIMIT_OVERRIDES).toEqual(overrides);
  expect(inside.SANDBOX_RUN_TIMEOUT).toBe(1234);
});

test("a guest is told each setting of executions that its runner reads", () => {
  const source = join(import.meta.dirname, "../../../runner/src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const read = files.flatMap(
    (name) => readFileSync(join(source, name), "utf8").match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? [],
  );
  const asked = new Set(read.filter((name) => /^(SANDBOX|PTC|JOB)_/.test(name) && name in VARIABLES));
  const told = guestEnvironment(
    loadConfig("launcher", {
      SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
      SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
    }),
  );
  expect(asked).toContain("SANDBOX_RUN_TIMEOUT");
  expect([...asked].filter((name) => !(name in told))).toEqual([]);
});

test("a guest is told each variable that its jaild is started by", () => {
  const image = mkdtempSync(join(tmpdir(), "svc-image-"));
  onTestFinished(() => rmSync(image, { recursive: true }));
  mkdirSync(join(image, "rootfs"));
  writeFileSync(join(image, "runtimes.json"), '{"runtimes":[]}');
  const asked = new Set<string>();
  const caller = new Proxy<Record<string, string>>({}, { get: (_, name) => void asked.add(String(name)) });
  jaildCommand({
    instance: containerInstance({ SANDBOX_PACKAGES_DIRECTORY: image }),
    caller,
    view: undefined,
  });
  const told = guestEnvironment(
    loadConfig("launcher", {
      SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
      SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
    }),
  );
  expect(asked).toContain("SANDBOX_WORKSPACE_MAX_BYTES");
  expect([...asked].filter((name) => !(name in told))).toEqual([]);
});
