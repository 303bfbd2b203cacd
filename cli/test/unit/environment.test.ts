import { describe, expect, it } from "vitest";
import { componentEnvironment, overriddenSettings } from "../../src/environment.ts";
import { resolveInstance, SERVICES, type Service } from "../../src/instance.ts";
import { SECRET_NAMES, type Secrets } from "../../src/secrets.ts";

const instance = resolveInstance({ "data-dir": "/srv/svc", "port-offset": undefined }, {});
const secrets = Object.fromEntries(SECRET_NAMES.map((name) => [name, `the ${name}`])) as Secrets;
const APART = { SVC_TOPOLOGY: "separate" };
const environmentOf = (service: Service, caller: Record<string, string> = {}) =>
  componentEnvironment(service, instance, secrets, caller);
const secretsOf = (service: Service, caller?: Record<string, string>) =>
  Object.keys(secrets)
    .filter((name) => Object.hasOwn(environmentOf(service, caller), name))
    .sort();

describe("componentEnvironment", () => {
  it("gives each process only the secrets that it needs, and tokens of its own calls", () => {
    expect(Object.fromEntries(SERVICES.map((service) => [service, secretsOf(service, APART)]))).toEqual({
      api: [
        "SVC_CONTINUATION_SECRET",
        "SVC_INTERNAL_TOKEN_API_TO_EGRESS_GATEWAY",
        "SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER",
        "SVC_INTERNAL_TOKEN_API_TO_TOOL_CALL_SERVER",
      ],
      worker: ["SVC_EXECUTION_MANIFEST_PRIVATE_KEY", "SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY"],
      runner: ["SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"],
      "file-server": [
        "SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER",
        "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_FILE_SERVER",
      ],
      "tool-call-server": [
        "SVC_INTERNAL_TOKEN_API_TO_TOOL_CALL_SERVER",
        "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_TOOL_CALL_SERVER",
      ],
      "egress-gateway": [
        "SVC_EGRESS_GRANT_SECRET",
        "SVC_INTERNAL_TOKEN_API_TO_EGRESS_GATEWAY",
        "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_FILE_SERVER",
        "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_TOOL_CALL_SERVER",
        "SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY",
      ],
    });
  });

  it("says where microVMs start from where there are some, so that others are not warned of it", () => {
    expect(environmentOf("runner")).not.toHaveProperty("LAUNCHER_ROOTFS");
    expect(environmentOf("runner", { LAUNCHER_ROOTFS: "/guest" })).toMatchObject({
      LAUNCHER_ROOTFS: "/guest",
    });
    const launcher = componentEnvironment("launcher", instance, secrets, { KVM_ENABLED: "true" });
    expect(launcher.LAUNCHER_ROOTFS).toMatch(/\/guest$/);
  });

  it("gives the one process of five components the token of all, too", () => {
    const given = componentEnvironment("combined", instance, secrets, { SVC_TOPOLOGY: "combined" });
    expect(Object.keys(secrets).filter((name) => !Object.hasOwn(given, name))).toEqual([
      "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY",
    ]);
  });

  it("leaves it at the token of all where the operator set one", () => {
    const caller = { ...APART, SVC_INTERNAL_SERVICE_TOKEN: "of the operator" };
    expect(environmentOf("worker", caller).SVC_INTERNAL_SERVICE_TOKEN).toBe("of the operator");
    expect(Object.fromEntries(SERVICES.map((service) => [service, secretsOf(service, caller)]))).toEqual({
      api: ["SVC_CONTINUATION_SECRET", "SVC_INTERNAL_SERVICE_TOKEN"],
      worker: ["SVC_EXECUTION_MANIFEST_PRIVATE_KEY", "SVC_INTERNAL_SERVICE_TOKEN"],
      runner: ["SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY"],
      "file-server": ["SVC_INTERNAL_SERVICE_TOKEN"],
      "tool-call-server": ["SVC_INTERNAL_SERVICE_TOKEN"],
      "egress-gateway": ["SVC_EGRESS_GRANT_SECRET", "SVC_INTERNAL_SERVICE_TOKEN"],
    });
  });

  it("never gives the runner the address of Redis", () => {
    expect(environmentOf("runner", { REDIS_URL: "redis://:secret@127.0.0.1:1" })).not.toHaveProperty(
      "REDIS_URL",
    );
    expect(environmentOf("worker", { REDIS_URL: "redis://:secret@127.0.0.1:1" }).REDIS_URL).toContain(
      "secret",
    );
  });

  it("gives the login of the caller only where the caller names a Redis", () => {
    const login = { REDIS_USERNAME: "app", REDIS_PASSWORD: "secret" };
    expect(environmentOf("worker", login)).not.toHaveProperty("REDIS_USERNAME");
    expect(environmentOf("worker", login)).not.toHaveProperty("REDIS_PASSWORD");
    expect(environmentOf("worker", { ...login, REDIS_HOST: "redis" })).toMatchObject(login);
  });

  it("passes on our variables and nothing else of the caller", () => {
    const env = environmentOf("api", {
      MAX_REQUESTS: "7",
      AWS_SECRET_ACCESS_KEY: "x",
      NODE_OPTIONS: "--inspect",
      NODE_EXTRA_CA_CERTS: "/x",
      HOME: "/root",
    });
    expect(env.MAX_REQUESTS).toBe("7");
    for (const name of ["AWS_SECRET_ACCESS_KEY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS"]) {
      expect(env).not.toHaveProperty(name);
    }
    expect(env.HOME).toBe("/nonexistent");
  });

  it("passes on unknown SVC_ names, so that the components refuse them", () => {
    expect(environmentOf("api", { SVC_PERSIST_SESSION: "true" }).SVC_PERSIST_SESSION).toBe("true");
  });

  it("binds to loopback by default, in local mode unless a setting turns authentication on", () => {
    const loopback = { SERVICE_HOST: "127.0.0.1", FILE_SERVER_HOST: "127.0.0.1" };
    expect(environmentOf("api")).toMatchObject({ LOCAL_MODE: "true", ...loopback });
    for (const caller of [{ LOCAL_MODE: "false" }, { SVC_JWT_PUBLIC_KEYS_DIR: "/keys" }] as const) {
      expect(environmentOf("api", caller)).toMatchObject({ LOCAL_MODE: "false", ...loopback, ...caller });
    }
  });

  it("says which addresses of the caller have no effect", () => {
    const caller = { FILE_SERVER_URL: "http://files:3000", SANDBOX_ENDPOINT: "", SERVICE_PORT: "3112" };
    expect(overriddenSettings(instance, caller)).toEqual(["FILE_SERVER_URL"]);
    expect(environmentOf("api", caller).FILE_SERVER_URL).toBe("http://127.0.0.1:3000");
  });

  it("has no component look for another elsewhere, whichever variable says so", () => {
    const elsewhere = {
      EGRESS_GATEWAY_FILE_SERVER_URL: "http://files:3000",
      EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: "http://tools:3033",
      SANDBOX_RUNNER_URLS: "http://runner:2000",
      SANDBOX_ADVERTISED_URL: "http://runner:2000",
      SVC_RUNNER_DISCOVERY: "dns",
    };
    expect(overriddenSettings(instance, elsewhere)).toEqual(Object.keys(elsewhere));
    expect(environmentOf("egress-gateway", elsewhere)).toMatchObject({
      EGRESS_GATEWAY_FILE_SERVER_URL: "",
      EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: "",
    });
    expect(environmentOf("worker", elsewhere)).toMatchObject({
      SANDBOX_RUNNER_URLS: "",
      SVC_RUNNER_DISCOVERY: "off",
    });
    expect(environmentOf("runner", elsewhere)).toMatchObject({ SANDBOX_ADVERTISED_URL: "" });
  });
});
