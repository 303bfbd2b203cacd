/** What is wrong with how a component would speak to others. */
import type { Component } from "./types.ts";
import type { Config, VariableName } from "./variables.ts";

const FILES = ["SVC_TLS_CERT_FILE", "SVC_TLS_KEY_FILE", "SVC_TLS_CA_FILE"] as const;

/** Where each component listens. The API leaves TLS to a proxy. */
const HOSTS: Partial<Record<Component, VariableName>> = {
  worker: "WORKER_HOST",
  runner: "RUNNER_HOST",
  "file-server": "FILE_SERVER_HOST",
  "tool-call-server": "TOOL_CALL_SERVER_HOST",
  "egress-gateway": "EGRESS_GATEWAY_HOST",
};

const ADDRESSES: Partial<Record<Component, readonly VariableName[]>> = {
  api: ["FILE_SERVER_URL", "TOOL_CALL_SERVER_URL", "EGRESS_GATEWAY_URL"],
  worker: ["EGRESS_GATEWAY_URL", "SANDBOX_ENDPOINT", "SANDBOX_RUNNER_URLS"],
  "egress-gateway": ["EGRESS_GATEWAY_FILE_SERVER_URL", "EGRESS_GATEWAY_TOOL_CALL_SERVER_URL"],
};

export function tlsProblems(
  component: Component,
  config: Config,
  isLoopback: (host: string) => boolean,
): string[] {
  const unset = FILES.filter((name) => config[name] === "");
  if (unset.length > 0 && unset.length < FILES.length)
    return [`${FILES.join(", ")} belong together: ${unset.join(" and ")} must be set, too`];
  const addresses = (ADDRESSES[component] ?? []).flatMap((name) =>
    [config[name]].flat().map((address) => ({ name, address: String(address) })),
  );
  if (unset.length === 0) {
    return addresses
      .filter(({ address }) => !address.startsWith("https:"))
      .map(
        ({ name, address }) =>
          `${name} must begin with https: where SVC_TLS_CERT_FILE is set, not ${address}`,
      );
  }
  const host = HOSTS[component];
  if (host === undefined || config.SVC_ALLOW_PLAIN_HTTP || isLoopback(String(config[host]))) return [];
  return [
    `${host}=${config[host]} without TLS lets tokens and files be read on the network: set ${FILES.join(", ")}, or SVC_ALLOW_PLAIN_HTTP=true in a network that is encrypted or closed itself (docs/tls.md)`,
  ];
}
