/**
 * Finds runners in DNS. `dns`: the name of an endpoint has one address per runner, as for a headless service: A records, or AAAA records
 * if there are no A records. `srv`: the name has SRV records, each with a host and a port. DNS servers are asked directly: names must be
 * complete, and hosts files and search domains do not apply. The number of runners is bounded. With TLS, a runner at an address needs a
 * certificate for the name that was looked up, because runner addresses change and are in no certificate.
 */
import type { Resolver } from "node:dns/promises";
import { isIP } from "node:net";

export type Discovery = "dns" | "srv";
export type DnsResolver = Pick<Resolver, "resolve4" | "resolve6" | "resolveSrv">;

export interface FoundRunner {
  /** Origin of the runner's URLs. */
  address: string;
  /** The name that its certificate must have; undefined: the host of the address. */
  certifiedAs?: string;
}

/** Most runners of one worker. */
const MAX_RUNNERS = 256;

/** All runners, one for each address; throws when a name cannot be resolved. */
export async function discoverRunners(
  endpoints: readonly string[],
  how: Discovery,
  resolver: DnsResolver,
): Promise<FoundRunner[]> {
  const found = await Promise.all(
    endpoints.map((endpoint) => (how === "srv" ? byService : byAddress)(new URL(endpoint), resolver)),
  );
  const byOrigin = new Map(found.flat().map((runner) => [runner.address, runner]));
  const sorted = [...byOrigin.values()].sort((one, other) => (one.address < other.address ? -1 : 1));
  return sorted.slice(0, MAX_RUNNERS);
}

async function byAddress(endpoint: URL, resolver: DnsResolver): Promise<FoundRunner[]> {
  const { hostname } = endpoint;
  if (isIP(hostname) !== 0 || hostname.startsWith("[")) return [{ address: endpoint.origin }];
  const addresses = await resolver
    .resolve4(hostname)
    .catch(() => resolver.resolve6(hostname))
    .then((all) => all.map((address) => (isIP(address) === 6 ? `[${address}]` : address)));
  return addresses.map((address) => ({
    address: at(endpoint, address, endpoint.port),
    certifiedAs: hostname,
  }));
}

async function byService(endpoint: URL, resolver: DnsResolver): Promise<FoundRunner[]> {
  const records = await resolver.resolveSrv(endpoint.hostname);
  return records.map(({ name, port }) => ({ address: at(endpoint, name.replace(/\.$/, ""), String(port)) }));
}

function at({ protocol }: URL, host: string, port: string): string {
  return new URL(`${protocol}//${host}${port === "" ? "" : `:${port}`}`).origin;
}
