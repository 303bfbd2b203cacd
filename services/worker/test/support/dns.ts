/** A small DNS server on loopback, whose zone a test fills. */
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";

const TYPE = { A: 1, AAAA: 28, SRV: 33 } as const;
const IN = 1;
const HEADER_BYTES = 12;
const NO_SUCH_NAME = 3;

export interface DnsRecord {
  type: keyof typeof TYPE;
  data: Buffer;
}

export interface DnsServer {
  /** Records by name. */
  zone: Record<string, DnsRecord[]>;
  /** Asks this server alone. */
  resolver: Resolver;
  close: () => void;
}

export async function startDns(): Promise<DnsServer> {
  const server = createSocket("udp4");
  const resolver = new Resolver({ timeout: 1000, tries: 3 });
  const dns: DnsServer = { zone: {}, resolver, close: () => server.close() };
  server.on("message", (question, { port, address }) =>
    server.send(answerTo(question, dns.zone), port, address),
  );
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  return dns;
}

/** Answers the one question of a message. */
function answerTo(question: Buffer, zone: DnsServer["zone"]): Buffer {
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

export const a = (address: string): DnsRecord => ({
  type: "A",
  data: Buffer.from(address.split(".").map(Number)),
});
export const loopback6: DnsRecord = { type: "AAAA", data: Buffer.from([...Array(15).fill(0), 1]) };
export function srv(port: number, host: string): DnsRecord {
  const labels = host.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  return { type: "SRV", data: Buffer.from([0, 0, 0, 0, port >> 8, port & 255, ...labels, 0]) };
}
