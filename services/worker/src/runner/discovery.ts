/**
 * Finds runners in DNS. `dns`: the name of an endpoint has an address for each runner, as that of a headless service has: A
 * records, or AAAA where there are none. `srv`: it has SRV records, which name a host and a port each. DNS servers are asked
 * directly: names are whole, and lists of hosts and search domains do not count. What an answer may add is bounded.
 */
import type { Resolver } from "node:dns/promises";
import { isIP } from "node:net";

export type Discovery = "dns" | "srv";
export type DnsResolver = Pick<Resolver, "resolve4" | "resolve6" | "resolveSrv">;

/** Of one worker. */
const MAX_RUNNERS = 256;

/** The addresses of all runners; throws when a name cannot be resolved. */
export async function discoverRunners(
  endpoints: readonly string[],
  how: Discovery,
  resolver: DnsResolver,
): Promise<string[]> {
  const found = await Promise.all(
    endpoints.map((endpoint) => (how === "srv" ? byService : byAddress)(new URL(endpoint), resolver)),
  );
  return [...new Set(found.flat())].sort().slice(0, MAX_RUNNERS);
}

async function byAddress(endpoint: URL, resolver: DnsResolver): Promise<string[]> {
  const { hostname } = endpoint;
  if (isIP(hostname) !== 0 || hostname.startsWith("[")) return [endpoint.origin];
  const addresses = await resolver
    .resolve4(hostname)
    .catch(() => resolver.resolve6(hostname))
    .then((all) => all.map((address) => (isIP(address) === 6 ? `[${address}]` : address)));
  return addresses.map((address) => at(endpoint, address, endpoint.port));
}

async function byService(endpoint: URL, resolver: DnsResolver): Promise<string[]> {
  const records = await resolver.resolveSrv(endpoint.hostname);
  return records.map(({ name, port }) => at(endpoint, name.replace(/\.$/, ""), String(port)));
}

function at({ protocol }: URL, host: string, port: string): string {
  return new URL(`${protocol}//${host}${port === "" ? "" : `:${port}`}`).origin;
}
