/**
 * What the launcher tells a guest before anything else goes over the first channel: its settings, as JSON after their length (4
 * bytes, network order).
 */
import type { Readable } from "node:stream";

export interface GuestSettings {
  /** Environment of the runner and of jaild. */
  env: Record<string, string>;
  /** Random bytes of the host in base64, for the kernel's pool. */
  seed: string;
}

const LENGTH_BYTES = 4;
const MAX_BYTES = 1024 * 1024;

export function encodePreface(settings: GuestSettings): Buffer {
  const text = Buffer.from(JSON.stringify(settings));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** Leaves what comes after it in the stream. */
export async function readPreface(wire: Readable): Promise<GuestSettings> {
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
