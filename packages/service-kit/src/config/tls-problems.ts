/** Problems with a component's TLS settings, for the address that it listens on and the addresses that it calls. */
import { CALLS, LISTENS, placeOf } from "./calls.ts";
import type { Component } from "./types.ts";
import type { Config, VariableName } from "./variables.ts";

const FILES = ["SVC_TLS_CERT_FILE", "SVC_TLS_KEY_FILE", "SVC_TLS_CA_FILE"] as const;

export function tlsProblems(
  component: Component,
  config: Config,
  isLoopback: (host: string) => boolean,
): string[] {
  const unset = FILES.filter((name) => config[name] === "");
  if (unset.length > 0 && unset.length < FILES.length)
    return [`${FILES.join(", ")} belong together: ${unset.join(" and ")} must be set, too`];
  if (unset.length === 0) {
    return addressesOf(component)
      .flatMap((name) => [config[name]].flat().map((address) => ({ name, address: String(address) })))
      .filter(({ address }) => !address.startsWith("https:"))
      .map(
        ({ name, address }) =>
          `${name} must begin with https: where SVC_TLS_CERT_FILE is set, not ${address}`,
      );
  }
  const { host } = LISTENS[placeOf(component)];
  // A proxy in front of the API does TLS for it.
  if (component === "api" || config.SVC_ALLOW_PLAIN_HTTP || isLoopback(String(config[host]))) return [];
  return [
    `${host}=${config[host]} without TLS lets tokens and files be read on the network: set ${FILES.join(", ")}, or SVC_ALLOW_PLAIN_HTTP=true in a network that is encrypted or closed itself (docs/tls.md)`,
  ];
}

/** Variables with the addresses of other components that this one calls. */
function addressesOf(component: Component): VariableName[] {
  const names = CALLS.filter(({ from, to }) => from === placeOf(component) && to in LISTENS).flatMap(
    ({ by }) => by ?? [],
  );
  const urls = names.filter((name) => name !== "SANDBOX_FORWARD_TARGET");
  return component === "worker" ? [...urls, "SANDBOX_RUNNER_URLS"] : urls;
}
