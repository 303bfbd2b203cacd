/** Runners that are found in DNS, asked of a small DNS server on loopback. */
import { discoverRunners } from "@svc/worker/runner/discovery";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { a, type DnsServer, loopback6, srv, startDns } from "../support/dns.ts";

let dns: DnsServer;

beforeAll(async () => {
  dns = await startDns();
});
afterAll(() => dns.close());
beforeEach(() => {
  dns.zone = {};
});

async function found(endpoint: string, how: "dns" | "srv" = "dns"): Promise<string[]> {
  const runners = await discoverRunners([endpoint], how, dns.resolver);
  return runners.map(({ address }) => address);
}

it("a name has a runner at each of its addresses, with the port of the endpoint", async () => {
  dns.zone["runners.test"] = [a("10.0.0.2"), a("10.0.0.1"), a("10.0.0.2")];
  expect(await found("http://runners.test:2000")).toEqual(["http://10.0.0.1:2000", "http://10.0.0.2:2000"]);
  dns.zone["runners.test"] = [a("10.0.0.3")];
  expect(await found("http://runners.test:2000")).toEqual(["http://10.0.0.3:2000"]);
});

it("addresses of IPv6 count where there are none of IPv4", async () => {
  dns.zone["six.test"] = [loopback6];
  dns.zone["both.test"] = [loopback6, a("10.0.0.1")];
  expect(await found("http://six.test:2000")).toEqual(["http://[::1]:2000"]);
  expect(await found("http://both.test:2000")).toEqual(["http://10.0.0.1:2000"]);
});

it("SRV records say host and port of each runner", async () => {
  dns.zone["_runner._tcp.runners.test"] = [srv(2001, "one.runners.test"), srv(2002, "two.runners.test")];
  expect(await found("http://_runner._tcp.runners.test", "srv")).toEqual([
    "http://one.runners.test:2001",
    "http://two.runners.test:2002",
  ]);
});

it("an endpoint that is an address is one runner, and asks nobody", async () => {
  expect(await found("http://127.0.0.1:2000")).toEqual(["http://127.0.0.1:2000"]);
  expect(await found("http://[::1]:2000")).toEqual(["http://[::1]:2000"]);
});

it("no name, and a name without addresses, are failures: nobody takes them for a fleet of none", async () => {
  dns.zone["empty.test"] = [];
  await expect(found("http://missing.test:2000")).rejects.toMatchObject({ code: "ENOTFOUND" });
  await expect(found("http://empty.test:2000")).rejects.toMatchObject({ code: "ENODATA" });
  await expect(found("http://missing.test", "srv")).rejects.toMatchObject({ code: "ENOTFOUND" });
});

it("more runners than a worker serves are left out", async () => {
  const many = Array.from({ length: 300 }, (_, at) => a(`10.0.${at >> 8}.${at & 255}`));
  const asked = { resolve4: async () => many.map(({ data }) => data.join(".")) };
  const endpoints = ["http://runners.test:2000"];
  const answers = await discoverRunners(endpoints, "dns", Object.assign(Object.create(dns.resolver), asked));
  expect(answers).toHaveLength(256);
});
