import { describe, expect, it } from "vitest";
import { componentEnvironment } from "../../src/environment.ts";
import { resolveInstance, SERVICES, type Service } from "../../src/instance.ts";
import type { Secrets } from "../../src/secrets.ts";

const instance = resolveInstance({ "data-dir": "/srv/svc", "port-offset": undefined }, {});
const secrets: Secrets = {
  SVC_INTERNAL_SERVICE_TOKEN: "token",
  SVC_EGRESS_GRANT_SECRET: "grant",
  SVC_CONTINUATION_SECRET: "continuation",
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "private",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "public",
};
const environmentOf = (service: Service, caller: Record<string, string> = {}) =>
  componentEnvironment(service, instance, secrets, caller);
const secretsOf = (service: Service) =>
  Object.keys(secrets).filter((name) => Object.hasOwn(environmentOf(service), name));

describe("componentEnvironment", () => {
  it("gives each component only the secrets that it needs", () => {
    expect(Object.fromEntries(SERVICES.map((service) => [service, secretsOf(service).sort()]))).toEqual({
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

  it("binds to loopback and stays in local mode, whatever LOCAL_MODE says outside", () => {
    const env = environmentOf("api", { LOCAL_MODE: "false" });
    expect(env).toMatchObject({
      LOCAL_MODE: "true",
      SERVICE_HOST: "127.0.0.1",
      FILE_SERVER_HOST: "127.0.0.1",
    });
  });
});
