/** Runners that are found in DNS, asked of a small DNS server on loopback. */
import { createSocket, type Socket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { discoverRunners } from "@svc/worker/runner/discovery";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

const TYPE = { A: 1, AAAA: 28, SRV: 33 } as const;
const IN = 1;
const HEADER_BYTES = 12;
const NO_SUCH_NAME = 3;

interface DnsRecord {
  type: keyof typeof TYPE;
  data: Buffer;
}

let server: Socket;
let resolver: Resolver;
let zone: Record<string, DnsRecord[]> = {};

beforeAll(async () => {
  server = createSocket("udp4");
  server.on("message", (question, { port, address }) => server.send(answerTo(question), port, address));
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  resolver = new Resolver({ timeout: 1000, tries: 3 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
});
afterAll(() => server.close());
beforeEach(() => {
  zone = {};
});

/** Answers the one question of a message. */
function answerTo(question: Buffer): Buffer {
  let at = HEADER_BYTES;
  const labels: string[] = [];
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const name = labels.join(".").toLowerCase();
  const records = (zone[name] ?? []).filter((record) => TYPE[record.type] === type);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(question.readUInt16BE(0), 0);
  header.writeUInt16BE(0x8180 | (name in zone ? 0 : NO_SUCH_NAME), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  const answers = records.map(({ data }) => {
    const fixed = Buffer.from([0xc0, HEADER_BYTES, 0, type, 0, IN, 0, 0, 0, 0, 0, data.length]);
    return Buffer.concat([fixed, data]);
  });
  return Buffer.concat([header, question.subarray(HEADER_BYTES, at + 5), ...answers]);
}

const a = (address: string): DnsRecord => ({ type: "A", data: Buffer.from(address.split(".").map(Number)) });
const loopback6: DnsRecord = { type: "AAAA", data: Buffer.from([...Array(15).fill(0), 1]) };
function srv(port: number, host: string): DnsRecord {
  const labels = host.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  return { type: "SRV", data: Buffer.from([0, 0, 0, 0, port >> 8, port & 255, ...labels, 0]) };
}

const found = (endpoint: string, how: "dns" | "srv" = "dns") => discoverRunners([endpoint], how, resolver);

it("a name has a runner at each of its addresses, with the port of the endpoint", async () => {
  zone["runners.test"] = [a("10.0.0.2"), a("10.0.0.1"), a("10.0.0.2")];
  expect(await found("http://runners.test:2000")).toEqual(["http://10.0.0.1:2000", "http://10.0.0.2:2000"]);
  zone["runners.test"] = [a("10.0.0.3")];
  expect(await found("http://runners.test:2000")).toEqual(["http://10.0.0.3:2000"]);
});

it("addresses of IPv6 count where there are none of IPv4", async () => {
  zone["six.test"] = [loopback6];
  zone["both.test"] = [loopback6, a("10.0.0.1")];
  expect(await found("http://six.test:2000")).toEqual(["http://[::1]:2000"]);
  expect(await found("http://both.test:2000")).toEqual(["http://10.0.0.1:2000"]);
});

it("SRV records say host and port of each runner", async () => {
  zone["_runner._tcp.runners.test"] = [srv(2001, "one.runners.test"), srv(2002, "two.runners.test")];
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
  zone["empty.test"] = [];
  await expect(found("http://missing.test:2000")).rejects.toMatchObject({ code: "ENOTFOUND" });
  await expect(found("http://empty.test:2000")).rejects.toMatchObject({ code: "ENODATA" });
  await expect(found("http://missing.test", "srv")).rejects.toMatchObject({ code: "ENOTFOUND" });
});

it("more runners than a worker serves are left out", async () => {
  const many = Array.from({ length: 300 }, (_, at) => a(`10.0.${at >> 8}.${at & 255}`));
  const asked = { resolve4: async () => many.map(({ data }) => data.join(".")) };
  const endpoints = ["http://runners.test:2000"];
  const answers = await discoverRunners(endpoints, "dns", Object.assign(Object.create(resolver), asked));
  expect(answers).toHaveLength(256);
});
