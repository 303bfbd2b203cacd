import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import {
  type Component,
  ConfigError,
  HOLDERS,
  loadConfig,
  needlessSecrets,
  PAIR_TOKENS,
  parsedVariable,
  redactedConfig,
  VARIABLES,
  type VariableName,
} from "../../src/index.ts";

const SECRET = newSecret();
const COMPONENTS = [
  "api",
  "worker",
  "runner",
  "launcher",
  "file-server",
  "tool-call-server",
  "egress-gateway",
] as const;
const COMPLETE = {
  SVC_INTERNAL_SERVICE_TOKEN: SECRET,
  SVC_EGRESS_GRANT_SECRET: SECRET,
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "private",
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "public",
};

const problemsOf = (component: Component, env: Record<string, string>): readonly string[] =>
  thrown(ConfigError, () => loadConfig(component, env))?.problems ?? [];

describe("what a component needs", () => {
  const needs: Record<Component, readonly (keyof typeof COMPLETE)[]> = {
    api: ["SVC_INTERNAL_SERVICE_TOKEN"],
    worker: ["SVC_INTERNAL_SERVICE_TOKEN", "SVC_EXECUTION_MANIFEST_PRIVATE_KEY"],
    runner: ["SANDBOX_FORWARD_TARGET", "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"],
    launcher: ["SANDBOX_FORWARD_TARGET", "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"],
    "file-server": ["SVC_INTERNAL_SERVICE_TOKEN"],
    "tool-call-server": ["SVC_INTERNAL_SERVICE_TOKEN"],
    "egress-gateway": ["SVC_INTERNAL_SERVICE_TOKEN", "SVC_EGRESS_GRANT_SECRET"],
  };

  it.each(COMPONENTS)("the %s starts with the shared file of variables", (component) => {
    expect(problemsOf(component, COMPLETE)).toEqual([]);
  });

  it.each(COMPONENTS)("the %s stops without what it needs and names each", (component) => {
    expect(problemsOf(component, {})).toEqual(
      needs[component].map((name) => `${name} is required by the ${component}`),
    );
    for (const blank of ["", "   "]) {
      const env = Object.fromEntries(Object.keys(COMPLETE).map((name) => [name, blank]));
      expect(problemsOf(component, env)).toHaveLength(needs[component].length);
    }
  });

  it("the runner needs no key where it demands no manifest", () => {
    const { SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: _, ...keyless } = COMPLETE;
    expect(problemsOf("runner", { ...keyless, SANDBOX_REQUIRE_EGRESS_MANIFEST: "false" })).toEqual([]);
    expect(problemsOf("runner", { ...keyless, LOCAL_MODE: "true" })).toHaveLength(1);
  });

  it.each(COMPONENTS)("local mode gives the %s no built-in secret", (component) => {
    const env = { LOCAL_MODE: "true" };
    expect(problemsOf(component, env)).toHaveLength(needs[component].length);
  });

  it.each([
    "SVC_INTERNAL_SERVICE_TOKEN",
    "SVC_EGRESS_GRANT_SECRET",
    "SVC_EGRESS_GRANT_SECRET_PREVIOUS",
    "SVC_CONTINUATION_SECRET",
    "SVC_METRICS_TOKEN",
  ])("%s that is short or can be guessed stops every component, also in local mode", (name) => {
    for (const component of COMPONENTS) {
      for (const mode of [{}, { LOCAL_MODE: "true" }]) {
        const problems = (value: string) => problemsOf(component, { ...COMPLETE, ...mode, [name]: value });
        expect(problems(SECRET.slice(0, 31))).toEqual([`${name} must have at least 32 bytes`]);
        expect(problems(SECRET.slice(0, 32))).toEqual([]);
        expect(problems("x".repeat(32))).toEqual([expect.stringContaining(`${name} can be guessed`)]);
      }
    }
  });
});

describe("relations between values", () => {
  it.each([
    [
      { JOB_TIMEOUT: "100000", MAX_RUN_TIMEOUT: "100001" },
      "MAX_RUN_TIMEOUT must be at most JOB_TIMEOUT: 100001 is above 100000",
    ],
    [
      { JOB_TIMEOUT: "50000" },
      "SANDBOX_RUN_TIMEOUT must be at most MAX_RUN_TIMEOUT, by default JOB_TIMEOUT: 60000 is above 50000",
    ],
    [
      { MAX_RUN_TIMEOUT: "1000", SANDBOX_RUN_TIMEOUT: "1001" },
      "SANDBOX_RUN_TIMEOUT must be at most MAX_RUN_TIMEOUT, by default JOB_TIMEOUT: 1001 is above 1000",
    ],
    [
      { TOOL_CALL_REQUEST_TIMEOUT: "600000", TOOL_CALL_SESSION_EXPIRY: "600" },
      "TOOL_CALL_REQUEST_TIMEOUT, in milliseconds, must be below TOOL_CALL_SESSION_EXPIRY, in seconds: 600000 ms is not below 600 s",
    ],
    [
      { EGRESS_GRANT_TTL_SECONDS: "584" },
      "EGRESS_GRANT_TTL_SECONDS must cover the widest worker deadline, by JOB_TIMEOUT, and 60 s: at least 585",
    ],
    [
      { JOB_TIMEOUT: "900000", MAX_RUN_TIMEOUT: "300000" },
      "EGRESS_GRANT_TTL_SECONDS must cover the widest worker deadline, by JOB_TIMEOUT, and 60 s: at least 1185",
    ],
    [
      { PTC_MAX_CALLS: "201" },
      "EXECUTION_MANIFEST_MAX_TOOL_CALLS must be at least PTC_MAX_CALLS: 200 is below 201",
    ],
    [
      { EXECUTION_MANIFEST_MAX_REQUESTS: "199" },
      "EXECUTION_MANIFEST_MAX_REQUESTS must be at least PTC_MAX_CALLS: 199 is below 200",
    ],
    // A success counts for a minute: an idle service would be ready now and then.
    [{ CANARY_INTERVAL_MS: "45001" }, 'CANARY_INTERVAL_MS must be between 0 and 45000, not "45001"'],
  ])("%j stops the process", (env, problem) => {
    expect(problemsOf("worker", { ...COMPLETE, ...env })).toEqual([problem]);
  });

  it.each([
    { JOB_TIMEOUT: "100000", MAX_RUN_TIMEOUT: "100000", SANDBOX_RUN_TIMEOUT: "100000" },
    { TOOL_CALL_REQUEST_TIMEOUT: "599999", TOOL_CALL_SESSION_EXPIRY: "600" },
    { EGRESS_GRANT_TTL_SECONDS: "585" },
    { JOB_TIMEOUT: "900000", MAX_RUN_TIMEOUT: "300000", EGRESS_GRANT_TTL_SECONDS: "1185" },
    { PTC_MAX_CALLS: "1000", EXECUTION_MANIFEST_MAX_TOOL_CALLS: "1000" },
    { PTC_MAX_CALLS: "10", EXECUTION_MANIFEST_MAX_TOOL_CALLS: "10", EXECUTION_MANIFEST_MAX_REQUESTS: "10" },
    { CANARY_INTERVAL_MS: "45000" },
    { CANARY_INTERVAL_MS: "0" },
  ])("%j is just allowed", (env) => {
    expect(problemsOf("worker", { ...COMPLETE, ...env })).toEqual([]);
  });

  it("lists of pairs for tracing are judged where something is traced", () => {
    const lists = { OTEL_EXPORTER_OTLP_HEADERS: "hunter2", OTEL_RESOURCE_ATTRIBUTES: "a=%" };
    expect(problemsOf("worker", { ...COMPLETE, ...lists })).toEqual([]);
    expect(problemsOf("worker", { ...COMPLETE, ...lists, OTEL_TRACING_ENABLED: "true" })).toEqual([
      "OTEL_EXPORTER_OTLP_HEADERS must be a comma list of name=value with percent-encoded values",
      "OTEL_RESOURCE_ATTRIBUTES must be a comma list of name=value with percent-encoded values",
    ]);
  });

  it("the ceiling of a request's run limit follows JOB_TIMEOUT unless it is set", () => {
    expect(loadConfig("worker", { ...COMPLETE, JOB_TIMEOUT: "90000" }).MAX_RUN_TIMEOUT).toBe(90_000);
    const both = { ...COMPLETE, JOB_TIMEOUT: "90000", MAX_RUN_TIMEOUT: "80000" };
    expect(loadConfig("worker", both).MAX_RUN_TIMEOUT).toBe(80_000);
  });

  const KEYS = { SVC_JWT_PUBLIC_KEYS_DIR: "/keys", SVC_API_KEYS_FILE: "/api-keys" };
  it.each([
    [
      { LOCAL_MODE: "true", SVC_AUTH_PROVIDER: "librechat-jwt" },
      ["LOCAL_MODE=true", "SVC_AUTH_PROVIDER=librechat-jwt"],
    ],
    [{ LOCAL_MODE: "true", SVC_JWT_JWKS_JSON: '{"keys":[]}' }, ["LOCAL_MODE=true", "SVC_JWT_JWKS_JSON"]],
    [
      { SVC_AUTH_PROVIDER: "None", SVC_API_KEYS_FILE: "/api-keys" },
      ["SVC_AUTH_PROVIDER=none", "SVC_API_KEYS_FILE"],
    ],
  ])("the api refuses %j and names both", (env, [off = "", on]) => {
    expect(problemsOf("api", { ...COMPLETE, ...env })).toEqual([
      `${off} turns authentication off and ${on} turns it on: unset one of them`,
    ]);
  });

  it("the api names each setting that contradicts local mode, and no other component looks at them", () => {
    const env = { ...COMPLETE, ...KEYS, LOCAL_MODE: "true" };
    expect(problemsOf("api", env)).toHaveLength(2);
    expect(problemsOf("worker", env)).toEqual([]);
  });

  it.each([
    { ...KEYS },
    { ...KEYS, LOCAL_MODE: "false", SVC_AUTH_PROVIDER: "librechat-jwt" },
    { LOCAL_MODE: "true", SVC_AUTH_PROVIDER: "none" },
    { LOCAL_MODE: "false", SVC_AUTH_PROVIDER: "none" },
  ])("%j does not contradict itself", (env) => {
    expect(problemsOf("api", { ...COMPLETE, ...env })).toEqual([]);
  });

  it.each([
    [{ S3_ACCESS_KEY: "a" }, ["S3_ACCESS_KEY and S3_SECRET_KEY belong together"]],
    [{ S3_SECRET_KEY: "s" }, ["S3_ACCESS_KEY and S3_SECRET_KEY belong together"]],
    [{ S3_SESSION_TOKEN: "t" }, ["S3_SESSION_TOKEN needs S3_ACCESS_KEY and S3_SECRET_KEY"]],
    [{ S3_ACCESS_KEY: "a", S3_SECRET_KEY: "s", S3_SESSION_TOKEN: "t" }, []],
    [{}, []],
  ])("the file server takes keys of S3 whole or not at all: %j", (env, problems) => {
    expect(problemsOf("file-server", { ...COMPLETE, ...env })).toEqual(problems);
  });

  it("the gateway's addresses follow the plain ones unless they are set", () => {
    const env = { ...COMPLETE, FILE_SERVER_URL: "http://files:1", TOOL_CALL_SERVER_URL: "http://tools:2" };
    const config = loadConfig("egress-gateway", { ...env, EGRESS_GATEWAY_FILE_SERVER_URL: "http://near:3" });
    expect(config.EGRESS_GATEWAY_FILE_SERVER_URL).toBe("http://near:3");
    expect(config.EGRESS_GATEWAY_TOOL_CALL_SERVER_URL).toBe("http://tools:2");
  });

  it.each([
    ["0.0.0.0", {}, false],
    ["10.0.0.1", {}, false],
    ["localhost.example", {}, false],
    ["127.evil.example", {}, false],
    ["127.0.0.1", {}, true],
    ["::1", {}, true],
    ["localhost", {}, true],
    ["0.0.0.0", { SVC_ALLOW_AUTH_PROVIDER_NONE: "true" }, true],
    ["0.0.0.0", { LOCAL_MODE: "true" }, false],
    ["0.0.0.0", { LOCAL_MODE: "true", SVC_ALLOW_AUTH_PROVIDER_NONE: "true" }, true],
    ["127.0.0.1", { LOCAL_MODE: "true" }, true],
  ])("authentication off on %s with %j: allowed is %s", (host, env, allowed) => {
    const all = { ...COMPLETE, ...env, SVC_AUTH_PROVIDER: "none", SERVICE_HOST: host };
    expect(problemsOf("api", all)).toHaveLength(allowed ? 0 : 1);
  });
});

describe("tenants", () => {
  it.each([
    [{}, true],
    [{ SVC_JWT_SINGLE_TENANT_ID: "main" }, false],
    [{ SVC_JWT_SINGLE_TENANT_ID: "main", SVC_TENANT_ISOLATION_STRICT: "true" }, true],
    [{ SVC_JWT_SINGLE_TENANT_ID: "main", SVC_TENANT_ISOLATION_STRICT: "false" }, false],
    [{ SVC_TENANT_ISOLATION_STRICT: "true" }, true],
  ])("%j: tokens without a tenant are refused: %s", (env, isStrict) => {
    expect(loadConfig("api", { ...COMPLETE, ...env }).SVC_TENANT_ISOLATION_STRICT).toBe(isStrict);
  });

  it("tokens without a tenant cannot be allowed without a tenant for them", () => {
    const [problem, ...others] = problemsOf("api", { ...COMPLETE, SVC_TENANT_ISOLATION_STRICT: "false" });
    expect(problem).toContain("needs SVC_JWT_SINGLE_TENANT_ID");
    expect(others).toEqual([]);
  });
});

describe("hosts", () => {
  it("are loopback by default, all of them", () => {
    const config = loadConfig("worker", COMPLETE);
    const hosts = Object.keys(VARIABLES).filter((name) => /^(?!REDIS)\w*_HOST$/.test(name)) as VariableName[];
    expect(hosts.length).toBeGreaterThan(4);
    for (const name of hosts) expect([name, config[name]]).toEqual([name, "127.0.0.1"]);
  });

  it.each(["svc.internal", "Svc.Internal,10.0.0.7", "[fd00::1]"])("SVC_ALLOWED_HOSTS may be %s", (text) => {
    const { SVC_ALLOWED_HOSTS } = loadConfig("api", { ...COMPLETE, SVC_ALLOWED_HOSTS: text });
    expect(SVC_ALLOWED_HOSTS).toEqual(text.toLowerCase().split(","));
  });

  it.each(["http://a", "a:3112", "a/b", "*", "*.a", "a,,b", "user@a", "127.1"])(
    "SVC_ALLOWED_HOSTS may not be %s",
    (text) => {
      expect(problemsOf("api", { ...COMPLETE, SVC_ALLOWED_HOSTS: text })).toHaveLength(1);
    },
  );
});

describe("secrets", () => {
  const secretNames = (Object.keys(VARIABLES) as VariableName[]).filter((name) => VARIABLES[name].secret);

  it("are all variables whose name speaks of one", () => {
    const speaking = Object.keys(VARIABLES).filter((name) =>
      /SECRET|PASSWORD|TOKEN|PRIVATE_KEY|ACCESS_KEY/.test(name),
    );
    expect(secretNames).toEqual(expect.arrayContaining(speaking));
    expect(secretNames).toContain("REDIS_URL");
  });

  const value = (name: VariableName) => {
    if (!VARIABLES[name].secret) return "shown";
    // Each of its own.
    if (Object.hasOwn(PAIR_TOKENS, name)) return `${SECRET}${name}`;
    return name === "REDIS_URL" ? `redis://shown:${SECRET}@localhost` : SECRET;
  };
  const held = (Object.keys(HOLDERS) as VariableName[]).map((name) => [name, value(name)]);
  const all = { ...COMPLETE, ...Object.fromEntries(held) };

  it("each have holders", () => {
    expect(secretNames.filter((name) => HOLDERS[name] === undefined)).toEqual([]);
  });

  it("are not held by the runner, but for the token that guards its metrics and what a receiver of traces asks for", () => {
    const held = secretNames.filter((name) => HOLDERS[name]?.includes("runner"));
    expect(held).toEqual(["SVC_METRICS_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS"]);
  });

  it.each([
    ["SVC_EGRESS_GRANT_SECRET", "egress-gateway"],
    ["SVC_EGRESS_GRANT_SECRET_PREVIOUS", "egress-gateway"],
    ["SVC_EXECUTION_MANIFEST_PRIVATE_KEY", "worker"],
    ["SVC_CONTINUATION_SECRET", "api"],
    ["S3_SECRET_KEY", "file-server"],
  ] as const)("%s is held by the %s alone", (name, component) => {
    expect(HOLDERS[name]).toEqual([component]);
  });

  it.each(COMPONENTS)("that the %s does not need are not taken from a shared file", (component) => {
    const config = loadConfig(component, all);
    for (const name of Object.keys(HOLDERS) as VariableName[]) {
      expect([name, config[name] !== ""]).toEqual([name, HOLDERS[name]?.includes(component)]);
    }
    const needless = Object.entries(HOLDERS).filter(([, holders]) => !holders.includes(component));
    expect(needlessSecrets([component], all).sort()).toEqual(needless.map(([name]) => name).sort());
    expect(needlessSecrets([component], { REDIS_URL: " " })).toEqual([]);
  });

  it.each(COMPONENTS)("are never shown in the printed configuration of the %s", (component) => {
    const shown = redactedConfig(loadConfig(component, all));
    expect(JSON.stringify(shown)).not.toContain(SECRET);
    for (const name of secretNames) {
      expect(shown[name]).toBe(HOLDERS[name]?.includes(component) ? "[set]" : undefined);
    }
    expect(shown.SANDBOX_FORWARD_TARGET).toBe("gateway:3190");
  });

  it("are never shown in a message about them", () => {
    for (const name of secretNames) {
      for (const bad of ["s3cr3t", "s3cr3t-".repeat(5)]) {
        expect(problemsOf("egress-gateway", { [name]: bad }).join()).not.toContain("s3cr3t");
      }
    }
  });

  it("other bad values are shown, quoted", () => {
    expect(problemsOf("api", { ...COMPLETE, SERVICE_PORT: "a\nb" })).toEqual([
      'SERVICE_PORT must be a whole number, not "a\\nb"',
    ]);
  });
});

describe("a variable that only its component understands", () => {
  const config = loadConfig("worker", COMPLETE);
  const name = "SVC_EXECUTION_MANIFEST_PRIVATE_KEY";

  it("is parsed by it", () => {
    expect(parsedVariable(name, config, (text) => text.length)).toBe("private".length);
  });

  it("stops the process by its name when it has no meaning", () => {
    const refuse = () => {
      throw new Error("must be a key");
    };
    expect(() => parsedVariable(name, config, refuse)).toThrow(new ConfigError([`${name} must be a key`]));
  });
});

describe("the loaded configuration", () => {
  it("cannot be changed, and shows only what differs from the defaults", () => {
    const config = loadConfig("api", { ...COMPLETE, SERVICE_PORT: "4000" });
    expect(() => Object.assign(config, { SERVICE_PORT: 1 })).toThrow(TypeError);
    expect(redactedConfig(config)).toMatchObject({ SERVICE_PORT: 4000 });
    expect(redactedConfig(config)).not.toHaveProperty("SERVICE_HOST");
  });
});
