/**
 * The frame codec of jaild's socket protocol: u32 LE length of what follows (1 to 1 MiB + 64), u8 tag, payload. Pure.
 * The decoder trusts nothing: a length out of bounds ends the connection.
 */

/** Maximum payload bytes of one data frame. */
export const CHUNK_BYTES = 1 << 20;
const MAX_FRAME = CHUNK_BYTES + 64;

export interface Frame {
  tag: string;
  payload: Buffer;
}

export class ProtocolError extends Error {
  constructor(message: string) {
    super(`jaild protocol: ${message}`);
    this.name = "ProtocolError";
  }
}

/** Head of a frame whose payload of `length` bytes follows separately. */
export function frameHead(tag: string, length: number): Buffer {
  const head = Buffer.allocUnsafe(5);
  head.writeUInt32LE(length + 1, 0);
  head[4] = tag.charCodeAt(0);
  return head;
}

export function frame(tag: string, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length + 1 > MAX_FRAME) throw new ProtocolError("frame too long");
  return Buffer.concat([frameHead(tag, length), ...parts]);
}

/** Little-endian fields in front of a path or text. */
export function u16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

/** Reads fixed fields off a payload; throws when it is too short. */
export class Fields {
  readonly #payload: Buffer;
  #at = 0;

  constructor(payload: Buffer) {
    this.#payload = payload;
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#payload.length) throw new ProtocolError("frame too short");
    this.#at += bytes;
    return at;
  }

  u8(): number {
    return this.#payload.readUInt8(this.#take(1));
  }

  u16(): number {
    return this.#payload.readUInt16LE(this.#take(2));
  }

  u32(): number {
    return this.#payload.readUInt32LE(this.#take(4));
  }

  i32(): number {
    return this.#payload.readInt32LE(this.#take(4));
  }

  u64(): number {
    const value = this.#payload.readBigUInt64LE(this.#take(8));
    return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
  }

  get left(): number {
    return this.#payload.length - this.#at;
  }

  rest(): Buffer {
    const rest = this.#payload.subarray(this.#at);
    this.#at = this.#payload.length;
    return rest;
  }

  /** Throws unless everything has been read. */
  end(): void {
    if (this.#at !== this.#payload.length) throw new ProtocolError("frame too long");
  }
}

/** Splits a byte stream into frames. */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #length = 0;

  push(chunk: Buffer): Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const frames: Frame[] = [];
    for (;;) {
      if (this.#length < 5) return frames;
      const size = this.#peek(4).readUInt32LE(0);
      if (size < 1 || size > MAX_FRAME) throw new ProtocolError("frame length out of bounds");
      if (this.#length < 4 + size) return frames;
      const bytes = this.#peek(4 + size);
      this.#drop(4 + size);
      frames.push({ tag: String.fromCharCode(bytes[4] ?? 0), payload: bytes.subarray(5, 4 + size) });
    }
  }

  #peek(count: number): Buffer {
    const first = this.#chunks[0] as Buffer;
    if (first.length >= count) return first;
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }

  #drop(count: number): void {
    this.#length -= count;
    const first = this.#chunks[0] as Buffer;
    if (first.length > count) this.#chunks[0] = first.subarray(count);
    else this.#chunks.shift();
  }
}
