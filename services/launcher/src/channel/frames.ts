/**
 * The frames of a channel between launcher and guest. A header has 8 bytes, with integers in network order: stream number (4), type (1), payload
 * length (3). `open` and `end` (this side sends no more) have no payload. `data` has at most MAX_DATA bytes. The payload of `credit` is the
 * number (4 bytes) of further bytes that the other side may send. `reset` ends both directions. A side that sends anything else is hostile or
 * broken: the decoder throws, and the channel ends.
 */

export const MAX_DATA = 64 * 1024;
const HEAD_BYTES = 8;
const CREDIT_BYTES = 4;

export const TYPES = ["open", "data", "end", "credit", "reset"] as const;
export type FrameType = (typeof TYPES)[number];

export interface Frame {
  stream: number;
  type: FrameType;
  payload: Buffer;
}

export class ChannelError extends Error {}

const NONE: Buffer = Buffer.alloc(0);

export function encodeFrame(stream: number, type: FrameType, payload: Uint8Array = NONE): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  frame.writeUInt32BE(stream, 0);
  frame.writeUInt8(TYPES.indexOf(type), 4);
  frame.writeUIntBE(payload.length, 5, 3);
  frame.set(payload, HEAD_BYTES);
  return frame;
}

export function encodeCredit(stream: number, bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(CREDIT_BYTES);
  payload.writeUInt32BE(bytes);
  return encodeFrame(stream, "credit", payload);
}

/** Whether a frame of this type may have a payload of this length. */
function fits(type: FrameType, length: number): boolean {
  if (type === "data") return length > 0 && length <= MAX_DATA;
  return length === (type === "credit" ? CREDIT_BYTES : 0);
}

/** Decodes a byte stream incrementally; buffers less than one frame. */
export class FrameDecoder {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headLength = 0;
  #payload: Buffer = NONE;
  #payloadLength = 0;

  /** Yields the frames that these bytes complete. Throws a ChannelError at an invalid frame. */
  *push(chunk: Buffer): Generator<Frame> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headLength < HEAD_BYTES) {
        const copied = chunk.copy(this.#head, this.#headLength, at);
        this.#headLength += copied;
        at += copied;
        if (this.#headLength < HEAD_BYTES) return;
        this.#begin();
      }
      const copied = chunk.copy(this.#payload, this.#payloadLength, at);
      this.#payloadLength += copied;
      at += copied;
      if (this.#payloadLength === this.#payload.length) yield this.#finish();
    }
  }

  #type(): FrameType | undefined {
    return TYPES[this.#head.readUInt8(4)];
  }

  #begin(): void {
    const length = this.#head.readUIntBE(5, 3);
    const type = this.#type();
    if (type === undefined || !fits(type, length))
      throw new ChannelError(`no frame: type ${type}, ${length} bytes`);
    this.#payload = length === 0 ? NONE : Buffer.allocUnsafe(length);
    this.#payloadLength = 0;
  }

  #finish(): Frame {
    this.#headLength = 0;
    return { stream: this.#head.readUInt32BE(0), type: this.#type() as FrameType, payload: this.#payload };
  }
}
