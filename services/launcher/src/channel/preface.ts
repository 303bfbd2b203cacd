/**
 * The preface: the first bytes that a guest receives over the first channel. It is the guest's environment as JSON, after its length (4 bytes,
 * network order).
 */
import type { Readable } from "node:stream";

export type GuestEnvironment = Record<string, string>;

const LENGTH_BYTES = 4;
const MAX_BYTES = 1024 * 1024;

export function encodePreface(env: GuestEnvironment): Buffer {
  const text = Buffer.from(JSON.stringify(env));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** Reads the preface and leaves the bytes after it in the stream. */
export async function readPreface(wire: Readable): Promise<GuestEnvironment> {
  const length = (await readExactly(wire, LENGTH_BYTES)).readUInt32BE();
  if (length > MAX_BYTES) throw new Error("the settings are too long");
  return JSON.parse((await readExactly(wire, length)).toString("utf8"));
}

async function readExactly(wire: Readable, bytes: number): Promise<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  while (held.length < bytes) {
    const more: Buffer | null = wire.read();
    if (more !== null) held = Buffer.concat([held, more]);
    else if (wire.readableEnded || wire.destroyed) throw new Error("the settings did not come");
    else await somethingCame(wire);
  }
  if (held.length > bytes) wire.unshift(held.subarray(bytes));
  return held.subarray(0, bytes);
}

function somethingCame(wire: Readable): Promise<void> {
  const events = ["readable", "end", "close"];
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) wire.off(event, done);
      resolve();
    };
    for (const event of events) wire.on(event, done);
  });
}
