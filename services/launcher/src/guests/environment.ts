/** The environment of a guest's runner and jaild: the launcher's settings for executions, and no key. Pure. */
import type { Config } from "@svc/service-kit";
import { EXECUTIONS } from "@svc/service-kit/config/variables/executions";
import { FILE_SYSTEMS } from "@svc/service-kit/config/variables/launcher";
import { RUNNER } from "@svc/service-kit/config/variables/runner";

/** Replaces settings of the launcher that do not apply inside a guest. */
const OWN = {
  INSTANCE_ID: "guest",
  PORT: "2000",
  RUNNER_HOST: "127.0.0.1",
  SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: "3190",
  SANDBOX_FORWARD_TARGET: "127.0.0.1:3190",
  SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "",
  SANDBOX_MAX_CONCURRENT_JOBS: "1",
  SANDBOX_MAX_PAUSED: "1",
  SANDBOX_MAX_PAUSED_PER_PRINCIPAL: "1",
  SANDBOX_INPUT_CACHE_BYTES: "0",
  SANDBOX_PACKAGES_DIRECTORY: "/pkgs",
  SANDBOX_JAIL_SOCKET: "/run/svc/jaild.sock",
  SANDBOX_TOOL_DIRECTORY: "/run/svc/tools",
};

export function guestEnvironment(config: Config): Record<string, string> {
  const names = [EXECUTIONS, FILE_SYSTEMS, RUNNER].flatMap(Object.keys) as (keyof Config)[];
  const given = names.map((name) => [name, textOf(config[name])] as const).filter(([, text]) => text !== "");
  return { ...Object.fromEntries(given), LOG_LEVEL: config.LOG_LEVEL, ...OWN };
}

/** A value in the form in which its environment variable is written. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
