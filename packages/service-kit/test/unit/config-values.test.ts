import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig, misspeltVariables, VARIABLES, type VariableName } from "../../src/index.ts";

const TOKEN = newSecret();
const NEEDED = { SVC_INTERNAL_SERVICE_TOKEN: TOKEN };
const names = Object.keys(VARIABLES) as VariableName[];

const load = (env: Record<string, string>) => loadConfig("api", { ...NEEDED, ...env });

const problemsOf = (env: Record<string, string>): readonly string[] =>
  thrown(ConfigError, () => load(env))?.problems ?? [];

/** The default as an operator would write it. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

describe("every variable", () => {
  it.each(names.filter((name) => textOf(VARIABLES[name].fallback) !== ""))(
    "%s parses the text of its default",
    (name) => {
      expect(VARIABLES[name].parse(textOf(VARIABLES[name].fallback))).toEqual(VARIABLES[name].fallback);
    },
  );

  it.each(names)("%s has its default when it is absent or empty, and says what it means", (name) => {
    const empty = load({ ...Object.fromEntries(names.map((each) => [each, ""])), ...NEEDED });
    if (!(name in NEEDED)) expect(empty[name]).toEqual(load({})[name]);
    expect(VARIABLES[name].doc).toMatch(/\S.*\.$/);
  });
});

describe("the documented defaults", () => {
  it.each([
    ["SERVICE_PORT", 3112],
    ["SERVICE_HOST", "127.0.0.1"],
    ["TRUST_PROXY", 0],
    ["LOCAL_MODE", false],
    ["SVC_HTTP_JSON_LIMIT", 52_428_800],
    ["MAX_REQUESTS", 20],
    ["RATE_LIMIT_WINDOW", 30_000],
    ["SVC_MAX_CONCURRENT_EXECUTIONS", 20],
    ["MAX_FILE_SIZE", 26_214_400],
    ["UPLOAD_MAX_FILES", 200],
    ["SESSION_CACHE_TTL", 86_400],
    ["FILE_SERVER_URL", "http://localhost:3000"],
    ["SANDBOX_ENDPOINT", ["http://localhost:2000"]],
    ["PYTHON_CONCURRENCY", 1],
    ["OTHER_CONCURRENCY", 8],
    ["JOB_TIMEOUT", 300_000],
    ["MAX_RUN_TIMEOUT", 300_000],
    ["SANDBOX_RUN_TIMEOUT", 60_000],
    ["SANDBOX_COMPILE_TIMEOUT", 30_000],
    ["JOB_QUEUE_WAIT_MS", 60_000],
    ["WORKER_HEALTH_PORT", 3113],
    ["PTC_MODE", "live"],
    ["TOOL_CALL_SERVER_PORT", 3033],
    ["EGRESS_GATEWAY_PORT", 3190],
    ["EGRESS_GATEWAY_FILE_SERVER_URL", "http://localhost:3000"],
    ["EGRESS_GATEWAY_MAX_FILE_BYTES", 10_000_000],
    ["EGRESS_GRANT_TTL_SECONDS", 900],
    ["SVC_EGRESS_LEDGER_REQUIRED", true],
    ["SVC_PERSIST_SESSIONS", false],
    ["SVC_SESSION_STATE_MAX_BYTES", 104_857_600],
    ["FILE_SERVER_PORT", 3000],
    ["STORAGE_DRIVER", "s3"],
    ["REDIS_PORT", 6379],
    ["PORT", 2000],
    ["SANDBOX_MAX_CONCURRENT_JOBS", 8],
    ["SANDBOX_REQUIRE_EGRESS_MANIFEST", true],
    ["SANDBOX_RUN_MEMORY_LIMIT", 536_870_912],
    ["SANDBOX_OUTPUT_MAX_SIZE", 65_536],
    ["SANDBOX_MAX_OUTPUT_FILES", 50],
    ["SANDBOX_MAX_FILE_SIZE", 10_000_000],
    ["SANDBOX_WARM_START", true],
    ["LOG_LEVEL", "info"],
  ] as const)("%s is %j", (name, value) => {
    expect(load({})[name]).toEqual(value);
  });
});

describe("values", () => {
  it.each([
    ["SVC_HTTP_JSON_LIMIT", "1048576", 1_048_576],
    ["SVC_HTTP_JSON_LIMIT", "512k", 524_288],
    ["SVC_HTTP_JSON_LIMIT", "512KB", 524_288],
    ["SVC_HTTP_JSON_LIMIT", "50m", 52_428_800],
    ["SVC_HTTP_JSON_LIMIT", "50mb", 52_428_800],
    ["SVC_HTTP_JSON_LIMIT", "1g", 1_073_741_824],
    ["SVC_HTTP_JSON_LIMIT", " 1gb ", 1_073_741_824],
    ["SANDBOX_QUEUE_LIMIT", "0", 0],
    ["SVC_MAX_CONCURRENT_EXECUTIONS", "0", 0],
    ["SANDBOX_WARM_START", "off", false],
    ["SANDBOX_WARM_START", "ON", true],
    ["LOCAL_MODE", "true", true],
    ["REDIS_TLS", "TRUE", true],
    ["REDIS_TLS", "0", false],
    ["PTC_MODE", "Replay", "replay"],
    ["SANDBOX_LOG_LEVEL", "debug", "DEBUG"],
    ["SVC_AUTH_PROVIDER", "librechat-jwt", "librechat-jwt"],
    ["SVC_JWT_AUDIENCE", "a, b,c", ["a", "b", "c"]],
    ["FILE_SERVER_URL", "https://files.example:8443/base//", "https://files.example:8443/base"],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://host/in?dataset=svc", "http://host/in?dataset=svc"],
    ["REDIS_URL", "unix:///run/redis.sock", "unix:///run/redis.sock"],
    ["REDIS_URL", "rediss://user:p%40ss@[::1]:6380/2", "rediss://user:p%40ss@[::1]:6380/2"],
    ["REDIS_URL", "redis+sentinel://one,two:26380/mymaster", "redis+sentinel://one,two:26380/mymaster"],
    ["SANDBOX_LIMIT_OVERRIDES", '{"python":{"run_timeout":5}}', { python: { run_timeout: 5 } }],
  ] as const)("%s=%j is read as %j", (name, given, value) => {
    expect(load({ [name]: given })[name]).toEqual(value);
  });

  it.each([
    ["SERVICE_PORT", "65536"],
    ["SERVICE_PORT", "-1"],
    ["SERVICE_PORT", "80.5"],
    ["SERVICE_PORT", "0x50"],
    ["SERVICE_PORT", "1e3"],
    ["SERVICE_PORT", "NaN"],
    ["SERVICE_PORT", "80 81"],
    ["SERVICE_PORT", "9".repeat(400)],
    ["JOB_TIMEOUT", "0"],
    ["JOB_TIMEOUT", "5m"],
    ["TRUST_PROXY", "true"],
    ["SVC_JWT_CLOCK_SKEW_SECONDS", "31"],
    ["SVC_JWT_MAX_TTL_SECONDS", "301"],
    ["EXECUTION_MANIFEST_TTL_SECONDS", "601"],
    ["SANDBOX_MAX_INPUT_FILES", "257"],
    ["SANDBOX_MAX_PATH_LENGTH", "513"],
    ["EGRESS_GATEWAY_MAX_PATH_LENGTH", "513"],
    ["MAX_FILE_SIZE", "25 mb"],
    ["MAX_FILE_SIZE", "25tb"],
    ["MAX_FILE_SIZE", "1.5m"],
    ["MAX_FILE_SIZE", "m"],
    ["MAX_FILE_SIZE", "-1"],
    ["MAX_FILE_SIZE", "0"],
    ["SANDBOX_RUN_MEMORY_LIMIT", "1k"],
    ["SANDBOX_RUN_MEMORY_LIMIT", "5000g"],
    ["SANDBOX_COMPILE_MEMORY_LIMIT", "5000g"],
    ["SANDBOX_RLIMIT_FSIZE", "5000g"],
    ["LOCAL_MODE", "TRUE"],
    ["LOCAL_MODE", "1"],
    ["SVC_ALLOW_AUTH_PROVIDER_NONE", "on"],
    ["SVC_JWT_ALLOWED_ALGS", "EdDSA,HS256"],
    ["REDIS_TLS", "maybe"],
    ["SVC_PERSIST_SESSIONS", "2"],
    ["STORAGE_DRIVER", "disk"],
    ["PTC_MODE", "lives"],
    ["LOG_LEVEL", "verbose"],
    ["SVC_JWT_AUDIENCE", "a,,b"],
    ["SVC_LANGUAGES", ","],
    ["SANDBOX_TMP_MAX_BYTES", "0"],
    ["SANDBOX_WORKSPACE_MAX_BYTES", "65535"],
    ["FILE_SERVER_URL", "localhost:3000"],
    ["FILE_SERVER_URL", "file:///etc/passwd"],
    ["FILE_SERVER_URL", "//host"],
    ["FILE_SERVER_URL", "http://user:password@host"],
    ["FILE_SERVER_URL", "http://host/?token=secret"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://host/?dataset=svc"],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:password@host/in"],
    ["FILE_SERVER_URL", "http://host/?"],
    ["FILE_SERVER_URL", "http://host/#part"],
    ["SANDBOX_ENDPOINT", "http://one,http://:password@two"],
    ["SVC_PLAN_LIMITS", "[]"],
    ["SVC_PLAN_LIMITS", "null"],
    ["SVC_PLAN_LIMITS", "{"],
    ["REDIS_URL", "http://localhost"],
    ["REDIS_URL", "redis://localhost/notanumber"],
    ["REDIS_URL", "localhost:6379"],
    ["REDIS_URL", "unix:"],
    ["REDIS_URL", "redis+sentinel://one:26379"],
    ["REDIS_URL", "redis+sentinel://one:26379,/mymaster"],
    ["REDIS_URL", "redis+sentinel://one:notanumber/mymaster"],
    ["REDIS_URL", "redis+sentinel://one?two/mymaster"],
    ["REDIS_URL", "redis+sentinel://:p%@one/mymaster"],
    ["REDIS_URL", `redis+sentinel://${Array(17).fill("one").join()}/mymaster`],
  ] as const)("%s=%j stops the process and is named", (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems.filter((problem) => problem.startsWith(`${name} must `))).toHaveLength(1);
  });

  it("all problems are reported together", () => {
    const problems = problemsOf({ SERVICE_PORT: "x", MAX_FILE_SIZE: "y", SVC_UNKNOWN: "z" });
    expect(problems).toHaveLength(3);
    expect(new ConfigError(problems).message.split("\n")).toHaveLength(4);
  });
});

describe("unknown names", () => {
  it.each([
    ["SVC_PERSIST_SESSION", "SVC_PERSIST_SESSIONS"],
    ["SVC_INTERNAL_SERVICE_TOKE", "SVC_INTERNAL_SERVICE_TOKEN"],
    ["SVC_EGRESS_GRANT_SECRETS", "SVC_EGRESS_GRANT_SECRET"],
    ["SVC_JWT_AUDIENCES", "SVC_JWT_AUDIENCE"],
    ["SVC_jwt_kid", "SVC_JWT_KID"],
  ])("%s stops the process and %s is offered", (wrong, near) => {
    expect(problemsOf({ [wrong]: "x" })).toEqual([`${wrong} is not known; did you mean ${near}?`]);
  });

  it.each(["SVC_FOO", "SVC_", "SVC_NOTHING_LIKE_ANY_OTHER"])("for %s none is offered", (wrong) => {
    expect(problemsOf({ [wrong]: "x" })).toEqual([`${wrong} is not known`]);
  });

  it("an unknown name is told without its value", () => {
    expect(problemsOf({ SVC_SECRET_OF_MINE: "hunter2" }).join()).not.toContain("hunter2");
  });

  it("names of built-in methods are unknown too", () => {
    expect(problemsOf({ SVC___proto__: "x" })).toHaveLength(1);
  });

  it.each([
    ["MAX_REQEUSTS", "MAX_REQUESTS"],
    ["LOCALMODE", "LOCAL_MODE"],
    ["LOG_LEVELS", "LOG_LEVEL"],
    ["max_requests", undefined],
    ["MAX_REQUESTS", undefined],
    ["HOME", undefined],
    ["PATH", undefined],
    ["KUBERNETES_SERVICE_PORT", undefined],
    ["SVC_JWT_KIDS", undefined],
    ["constructor", undefined],
    ["X".repeat(100_000), undefined],
  ])("%.40s is probably meant to be %s", (name, meant) => {
    expect(misspeltVariables({ [name]: "x" })).toEqual(meant === undefined ? [] : [{ name, meant }]);
    expect(misspeltVariables({ [name]: "" })).toEqual([]);
  });

  it("names of other programs are not looked at", () => {
    expect(problemsOf({ PATH: "/bin", HOME: "/root", SVCX: "1", NODE_OPTIONS: "", MY_SVC_X: "1" })).toEqual(
      [],
    );
  });
});
