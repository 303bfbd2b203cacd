/** The time limits of deploy/proxies/nginx.conf against the API's. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { type DeadlineSettings, deadlinesFor } from "@svc/contracts";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { expect, test } from "vitest";

const fallback = (name: keyof DeadlineSettings) => VARIABLES[name].fallback;
const DEFAULTS: DeadlineSettings = {
  JOB_PRIME_ALLOWANCE_MS: fallback("JOB_PRIME_ALLOWANCE_MS"),
  JOB_POSTPROCESS_ALLOWANCE_MS: fallback("JOB_POSTPROCESS_ALLOWANCE_MS"),
  JOB_WAIT_GRACE_MS: fallback("JOB_WAIT_GRACE_MS"),
  SANDBOX_COMPILE_TIMEOUT: fallback("SANDBOX_COMPILE_TIMEOUT"),
};

test("nginx waits longer than the API does at most, by the default settings", () => {
  const config = readFileSync(join(ROOT, "deploy/proxies/nginx.conf"), "utf8");
  const apiMs =
    VARIABLES.JOB_QUEUE_WAIT_MS.fallback + deadlinesFor(VARIABLES.JOB_TIMEOUT.fallback, DEFAULTS).api;
  expect(config).toContain(`within ${apiMs / 1000} s`);
  for (const name of ["proxy_read_timeout", "proxy_send_timeout"]) {
    const seconds = new RegExp(`^\\s*${name} (\\d+)s;`, "m").exec(config)?.[1];
    expect(Number(seconds) * 1000, name).toBeGreaterThan(apiMs);
  }
});
