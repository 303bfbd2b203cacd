/**
 * Reads the configuration once. Checks every value and the relations between values, and refuses unknown `SVC_` names with the
 * nearest known one. Requires and checks the component's own secrets, and leaves out those of other components. Reports all
 * problems together. The result is frozen.
 */
import { deadlinesFor } from "@svc/contracts";
import { parsePairs } from "../tracing/pairs.ts";
import { placeOf } from "./calls.ts";
import { forwardProblems } from "./forward-target.ts";
import { holds } from "./holders.ts";
import { PAIR_TOKENS, pairTokenProblem, tokenProblems } from "./internal-tokens.ts";
import { modeContradictions } from "./mode.ts";
import { likelyName, misspelt } from "./nearest.ts";
import { redisProblems } from "./redis-address.ts";
import { keyProblem, secretProblem } from "./secret-quality.ts";
import { tlsProblems } from "./tls-problems.ts";
import type { Component } from "./types.ts";
import { MICROVM } from "./variables/microvm.ts";
import { UNAVAILABLE } from "./variables/unavailable.ts";
import { type Config, VARIABLES, type VariableName } from "./variables.ts";

export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

const NAMES = Object.keys(VARIABLES) as VariableName[];

/** Variables without which a component cannot start. The runner needs no keys when it requires no manifest. */
const REQUIRED: Partial<Record<VariableName, readonly Component[]>> = {
  SVC_EGRESS_GRANT_SECRET: ["egress-gateway"],
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: ["worker"],
  SANDBOX_FORWARD_TARGET: ["runner", "launcher"],
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: ["runner", "launcher"],
};

/** Quality checks of the service's own secrets. Redis and the object store are responsible for their own credentials. */
const JUDGES: Partial<Record<VariableName, (text: string) => string | undefined>> = {
  SVC_INTERNAL_SERVICE_TOKEN: secretProblem,
  ...Object.fromEntries(Object.keys(PAIR_TOKENS).map((name) => [name, pairTokenProblem])),
  SVC_EGRESS_GRANT_SECRET: secretProblem,
  SVC_EGRESS_GRANT_SECRET_PREVIOUS: secretProblem,
  SVC_CONTINUATION_SECRET: secretProblem,
  SVC_METRICS_TOKEN: secretProblem,
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: keyProblem,
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: keyProblem,
  SVC_JWT_PUBLIC_KEY: keyProblem,
  SVC_JWT_JWKS_JSON: keyProblem,
};

export function loadConfig(component: Component, env: Record<string, string | undefined>): Config {
  const { values, problems } = parseValues(env);
  for (const name of Object.keys(env)) {
    if (name.startsWith("SVC_") && !Object.hasOwn(VARIABLES, name)) {
      const meant = likelyName(name, NAMES);
      problems.push(`${name} is not known${meant === undefined ? "" : `; did you mean ${meant}?`}`);
    }
  }
  for (const name of NAMES) if (!holds(component, name)) values[name] = VARIABLES[name].fallback;
  const config = derive(values as Config, env);
  problems.push(
    ...tokenProblems(component, config),
    ...missing(component, config),
    ...unfit(env),
    ...relations(component, config),
    ...tracingProblems(config),
    ...(component === "api" ? modeContradictions(env) : []),
  );
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/** The effective values, including defaults that depend on other variables. An invalid value counts as its default. */
export function effectiveConfig(env: Record<string, string | undefined>): Config {
  return derive(parseValues(env).values as Config, env);
}

/** Problems of single values, without relations between them. */
export function valueProblems(env: Record<string, string | undefined>): string[] {
  return parseValues(env).problems;
}

function parseValues(env: Record<string, string | undefined>): {
  values: Record<string, unknown>;
  problems: string[];
} {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const name of NAMES) {
    const raw = env[name];
    const variable = VARIABLES[name];
    values[name] = variable.fallback;
    if (raw === undefined || raw === "") continue;
    try {
      values[name] = variable.parse(raw.trim());
    } catch (error) {
      problems.push(
        `${name} ${(error as Error).message}${variable.secret ? "" : `, not ${JSON.stringify(raw)}`}`,
      );
    }
  }
  return { values, problems };
}

/** Whether the API treats everyone who reaches it as the same principal. */
export function isUnauthenticated(config: Pick<Config, "LOCAL_MODE" | "SVC_AUTH_PROVIDER">): boolean {
  return config.LOCAL_MODE || config.SVC_AUTH_PROVIDER === "none";
}

/** Fills in defaults that depend on other variables. */
function derive(config: Config, env: Record<string, string | undefined>): Config {
  return {
    ...config,
    SVC_TENANT_ISOLATION_STRICT: env.SVC_TENANT_ISOLATION_STRICT
      ? config.SVC_TENANT_ISOLATION_STRICT
      : config.SVC_JWT_SINGLE_TENANT_ID === "",
    MAX_RUN_TIMEOUT: env.MAX_RUN_TIMEOUT ? config.MAX_RUN_TIMEOUT : config.JOB_TIMEOUT,
    EGRESS_GATEWAY_FILE_SERVER_URL: config.EGRESS_GATEWAY_FILE_SERVER_URL || config.FILE_SERVER_URL,
    EGRESS_GATEWAY_TOOL_CALL_SERVER_URL:
      config.EGRESS_GATEWAY_TOOL_CALL_SERVER_URL || config.TOOL_CALL_SERVER_URL,
    SANDBOX_ADVERTISED_URL: config.SANDBOX_ADVERTISED_URL || (config.SANDBOX_ENDPOINT[0] ?? ""),
    SANDBOX_MAX_PAUSED_PER_PRINCIPAL: env.SANDBOX_MAX_PAUSED_PER_PRINCIPAL
      ? config.SANDBOX_MAX_PAUSED_PER_PRINCIPAL
      : Math.ceil(config.SANDBOX_MAX_PAUSED / 2),
  };
}

function missing(component: Component, config: Config): string[] {
  const problems: string[] = [];
  for (const [name, components] of Object.entries(REQUIRED) as [VariableName, readonly Component[]][]) {
    const waived =
      name === "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY" && !config.SANDBOX_REQUIRE_EGRESS_MANIFEST;
    if (components.includes(component) && config[name] === "" && !waived)
      problems.push(`${name} is required by the ${component}`);
  }
  return problems;
}

/** Weak or published secrets. Every component checks all that are in its environment, even those that it does not use. */
function unfit(env: Record<string, string | undefined>): string[] {
  return Object.entries(JUDGES).flatMap(([name, judge]) => {
    const text = env[name]?.trim() ?? "";
    const problem = text === "" ? undefined : judge(text);
    return problem === undefined ? [] : [`${name} ${problem}`];
  });
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/** Whether a name or address means this machine alone. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

function relations(component: Component, config: Config): string[] {
  const problems: string[] = [];
  const { JOB_TIMEOUT: job, MAX_RUN_TIMEOUT: most, SANDBOX_RUN_TIMEOUT: run } = config;
  if (most > job) problems.push(`MAX_RUN_TIMEOUT must be at most JOB_TIMEOUT: ${most} is above ${job}`);
  if (run > most) {
    problems.push(
      `SANDBOX_RUN_TIMEOUT must be at most MAX_RUN_TIMEOUT, by default JOB_TIMEOUT: ${run} is above ${most}`,
    );
  }
  if (config.TOOL_CALL_REQUEST_TIMEOUT >= config.TOOL_CALL_SESSION_EXPIRY * 1000) {
    problems.push(
      `TOOL_CALL_REQUEST_TIMEOUT, in milliseconds, must be below TOOL_CALL_SESSION_EXPIRY, in seconds: ${config.TOOL_CALL_REQUEST_TIMEOUT} ms is not below ${config.TOOL_CALL_SESSION_EXPIRY} s`,
    );
  }
  // A replay may take as long as all rounds of the program together.
  const widest = deadlinesFor(job, config).worker / 1000 + 60;
  if (config.EGRESS_GRANT_TTL_SECONDS < widest) {
    problems.push(
      `EGRESS_GRANT_TTL_SECONDS must cover the widest worker deadline, by JOB_TIMEOUT, and 60 s: at least ${Math.ceil(widest)}`,
    );
  }
  if (config.SANDBOX_MAX_PAUSED_PER_PRINCIPAL > config.SANDBOX_MAX_PAUSED) {
    problems.push("SANDBOX_MAX_PAUSED_PER_PRINCIPAL must be at most SANDBOX_MAX_PAUSED");
  }
  if (component === "api" && !config.SVC_TENANT_ISOLATION_STRICT && config.SVC_JWT_SINGLE_TENANT_ID === "") {
    problems.push(
      "SVC_TENANT_ISOLATION_STRICT=false needs SVC_JWT_SINGLE_TENANT_ID, the tenant of tokens without one",
    );
  }
  problems.push(
    ...callBudgetProblems(config),
    ...tlsProblems(component, config, isLoopback),
    ...redisProblems(config),
  );
  if (component === "file-server") problems.push(...s3Problems(config));
  if (placeOf(component) === "runner") {
    const { SANDBOX_FORWARD_TARGET: target, SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: port } = config;
    problems.push(...forwardProblems(target, port), ...microvmProblems(component, config));
  }
  if (
    component === "api" &&
    isUnauthenticated(config) &&
    !isLoopback(config.SERVICE_HOST) &&
    !config.SVC_ALLOW_AUTH_PROVIDER_NONE
  ) {
    problems.push(
      `SERVICE_HOST=${config.SERVICE_HOST} without authentication lets everybody who reaches this address run programs and read files: ${config.LOCAL_MODE ? "LOCAL_MODE=true" : "SVC_AUTH_PROVIDER=none"} needs a loopback SERVICE_HOST. Turn authentication on with SVC_JWT_PUBLIC_KEYS_DIR or SVC_API_KEYS_FILE, or set SVC_ALLOW_AUTH_PROVIDER_NONE=true on a closed network (docs/deploy.md)`,
    );
  }
  return problems;
}

/** Each tool call is also one request. If another budget ended a program, its error would wrongly name PTC_MAX_CALLS. */
function callBudgetProblems(config: Config): string[] {
  const { PTC_MAX_CALLS: calls } = config;
  return (["EXECUTION_MANIFEST_MAX_TOOL_CALLS", "EXECUTION_MANIFEST_MAX_REQUESTS"] as const)
    .filter((name) => config[name] < calls)
    .map((name) => `${name} must be at least PTC_MAX_CALLS: ${config[name]} is below ${calls}`);
}

/** Refuses a runner when KVM_ENABLED is set: it would run programs on this machine's kernel instead of in microVMs. */
function microvmProblems(component: Component, config: Config): string[] {
  if (component === "runner")
    return config.KVM_ENABLED
      ? ["KVM_ENABLED asks for microVMs, which a runner does not make: start the launcher in its place"]
      : [];
  const { LAUNCHER_MEMORY_MIB: all, LAUNCHER_RAM_MIB: each } = config;
  const problems: string[] = [];
  if (all !== 0 && all < each)
    problems.push(
      `LAUNCHER_MEMORY_MIB must be at least LAUNCHER_RAM_MIB, ${each}: otherwise no microVM fits`,
    );
  // The guest's file systems are in its memory.
  for (const name of ["SANDBOX_WORKSPACE_MAX_BYTES", "SANDBOX_TMP_MAX_BYTES"] as const) {
    const most = each * 2 ** 20;
    if (config[name] > most)
      problems.push(`${name} must be at most ${most} bytes, what a microVM has by LAUNCHER_RAM_MIB=${each}`);
  }
  return problems;
}

/** Checks these variables only when tracing is on, because they may be set for other programs. */
function tracingProblems(config: Config): string[] {
  if (!config.OTEL_TRACING_ENABLED) return [];
  return (["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES"] as const).flatMap((name) => {
    try {
      parsePairs(config[name]);
      return [];
    } catch (error) {
      return [`${name} ${(error as Error).message}`];
    }
  });
}

/** With half a pair of keys, the AWS SDK would silently use another identity, from its credentials chain. */
function s3Problems({ S3_ACCESS_KEY, S3_SECRET_KEY, S3_SESSION_TOKEN }: Config): string[] {
  const problems: string[] = [];
  if ((S3_ACCESS_KEY === "") !== (S3_SECRET_KEY === "")) {
    problems.push("S3_ACCESS_KEY and S3_SECRET_KEY belong together");
  }
  if (S3_SESSION_TOKEN !== "" && S3_ACCESS_KEY === "") {
    problems.push("S3_SESSION_TOKEN needs S3_ACCESS_KEY and S3_SECRET_KEY");
  }
  return problems;
}

/** Variables that are set without effect, because this version lacks their feature or the feature is off. */
export function ineffectiveVariables(env: Record<string, string | undefined>): string[] {
  const { KVM_ENABLED } = effectiveConfig({ KVM_ENABLED: env.KVM_ENABLED });
  const names = [...Object.keys(UNAVAILABLE), ...(KVM_ENABLED ? [] : Object.keys(MICROVM))];
  return names.filter((name) => name !== "KVM_ENABLED" && (env[name] ?? "").trim() !== "");
}

/** Names that are probably misspelt, so that their values have no effect. Unknown `SVC_` names are refused instead. */
export function misspeltVariables(
  env: Record<string, string | undefined>,
): { name: string; meant: string }[] {
  const given = Object.keys(env).filter((name) => !name.startsWith("SVC_") && (env[name] ?? "") !== "");
  return misspelt(given, NAMES);
}

/** Parses a variable's text for its component. An error becomes a ConfigError, which stops the process and does not show the text. */
export function parsedVariable<T>(name: VariableName, config: Config, parse: (text: string) => T): T {
  try {
    return parse(config[name] as string);
  } catch (error) {
    throw new ConfigError([`${name} ${(error as Error).message}`]);
  }
}

/** Confidential variables in the environment of a process that none of its components uses. */
export function needlessSecrets(
  components: readonly Component[],
  env: Record<string, string | undefined>,
): VariableName[] {
  const isTaken = (name: VariableName) => components.some((component) => holds(component, name));
  return NAMES.filter((name) => !isTaken(name) && (env[name] ?? "").trim() !== "");
}

/** The configuration for the log: only values that differ from the defaults, with `[set]` for secrets. */
export function redactedConfig(config: Config): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of NAMES) {
    const variable = VARIABLES[name];
    const value = config[name];
    if (JSON.stringify(value) === JSON.stringify(variable.fallback)) continue;
    shown[name] = variable.secret ? "[set]" : value;
  }
  return shown;
}
