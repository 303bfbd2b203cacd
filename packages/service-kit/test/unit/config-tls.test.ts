import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import { type Component, ConfigError, loadConfig } from "../../src/index.ts";

const SECRET = newSecret();
const COMPLETE = {
  SVC_INTERNAL_SERVICE_TOKEN: SECRET,
  SVC_EGRESS_GRANT_SECRET: SECRET,
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "private",
  SANDBOX_FORWARD_TARGET: "gateway:3190",
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: "public",
};
const COMPONENTS = [
  "api",
  "worker",
  "runner",
  "launcher",
  "file-server",
  "tool-call-server",
  "egress-gateway",
] as const;

describe("TLS between components", () => {
  const TLS = { SVC_TLS_CERT_FILE: "/c", SVC_TLS_KEY_FILE: "/k", SVC_TLS_CA_FILE: "/a" };
  const HTTPS = {
    FILE_SERVER_URL: "https://files:3000",
    TOOL_CALL_SERVER_URL: "https://tools:3033",
    EGRESS_GATEWAY_URL: "https://gateway:3190",
    SANDBOX_ENDPOINT: "https://runner:2000",
    SANDBOX_RUNNER_URLS: "https://runner-1:2000,https://runner-2:2000",
  };
  const about = (component: Component, env: Record<string, string>) =>
    thrown(ConfigError, () => loadConfig(component, { ...COMPLETE, ...env }))?.problems ?? [];

  it.each(COMPONENTS)("the %s takes the three files together, and https addresses with them", (component) => {
    expect(about(component, { ...TLS, ...HTTPS })).toEqual([]);
    const { SVC_TLS_CA_FILE: _, ...two } = TLS;
    expect(about(component, { ...two, ...HTTPS })).toEqual([
      "SVC_TLS_CERT_FILE, SVC_TLS_KEY_FILE, SVC_TLS_CA_FILE belong together: SVC_TLS_CA_FILE must be set, too",
    ]);
  });

  it("names each address that is not https", () => {
    expect(about("worker", { ...TLS, ...HTTPS, SANDBOX_RUNNER_URLS: "https://a,http://b" })).toEqual([
      "SANDBOX_RUNNER_URLS must begin with https: where SVC_TLS_CERT_FILE is set, not http://b",
    ]);
    expect(about("api", TLS)).toHaveLength(3);
    expect(about("egress-gateway", TLS)).toHaveLength(2);
  });

  it.each([
    ["worker", "WORKER_HOST"],
    ["runner", "RUNNER_HOST"],
    ["file-server", "FILE_SERVER_HOST"],
    ["tool-call-server", "TOOL_CALL_SERVER_HOST"],
    ["egress-gateway", "EGRESS_GATEWAY_HOST"],
  ] as const)("the %s speaks plain HTTP on loopback alone, unless that is allowed", (component, host) => {
    for (const address of ["127.0.0.2", "::1", "localhost"])
      expect(about(component, { [host]: address })).toEqual([]);
    for (const address of ["0.0.0.0", "::", "10.0.0.7", "127.0.0.1.example.com"]) {
      const [problem, ...others] = about(component, { [host]: address });
      expect(problem).toContain(
        `${host}=${address} without TLS lets tokens and files be read on the network`,
      );
      expect(others).toEqual([]);
      expect(about(component, { [host]: address, SVC_ALLOW_PLAIN_HTTP: "true" })).toEqual([]);
      expect(about(component, { [host]: address, ...TLS, ...HTTPS })).toEqual([]);
    }
  });
});
