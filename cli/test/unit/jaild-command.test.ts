import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { jaildCommand } from "../../src/components.ts";
import { containerInstance } from "../../src/containers/place.ts";

function commandFor(caller: Record<string, string>): string[] {
  const image = mkdtempSync(join(tmpdir(), "svc-image-"));
  onTestFinished(() => rmSync(image, { recursive: true }));
  mkdirSync(join(image, "rootfs"));
  const zygotes = [{ name: "python", script: "/warm.py", argv: ["python3"] }];
  writeFileSync(join(image, "runtimes.json"), JSON.stringify({ runtimes: [{ env: {}, zygotes }] }));
  return jaildCommand({
    instance: containerInstance({ SANDBOX_PACKAGES_DIRECTORY: image }),
    caller,
    view: undefined,
  });
}

test("more jails than jaild can have are refused, with the variables that they come from", () => {
  const most = { SANDBOX_MAX_CONCURRENT_JOBS: "512", SANDBOX_MAX_PAUSED: "500" };
  expect(commandFor({ ...most, SANDBOX_WARM_POOL: "10" })).toContain("1024");
  expect(() => commandFor({ ...most, SANDBOX_WARM_POOL: "11" })).toThrow(
    "running, warm and paused programs would need 1025 jails, and there can be 1024",
  );
});

test.each([
  [{}, "150000"],
  [{ JOB_PRIME_ALLOWANCE_MS: "600000" }, "630000"],
  [{ JOB_PRIME_ALLOWANCE_MS: "86400000" }, "3600000"],
])("%j lets a job take %s ms to come: longer than its staging may take", (caller, wanted) => {
  const command = commandFor(caller);
  expect(command[command.indexOf("--stage-timeout-ms") + 1]).toBe(wanted);
});
