/**
 * Multiplexes streams over one pair of byte streams. One side opens a stream (`open`); the other side receives it (`onStream`). Each direction of
 * a stream has WINDOW bytes of credit, which the reader returns as it reads. A small frame costs as much credit as it takes memory. So a channel
 * holds at most MAX_STREAMS windows in each direction, whatever the other side does. A side that exceeds its credit, opens a stream that it may
 * not open, or sends frames for no stream is hostile: the channel ends with all its streams.
 */
import { Duplex } from "node:stream";
import { ChannelError, encodeCredit, encodeFrame, type Frame, FrameDecoder, MAX_DATA } from "./frames.ts";

export const WINDOW = 256 * 1024;
export const MAX_STREAMS = 64;
/** Least credit that a data frame costs: a Buffer in a stream's queue takes about this many bytes, however short it is. */
export const LEAST_COST = 128;
/** Credit is returned in steps of at least this many bytes. */
const CREDIT_STEP = WINDOW / 4;
/** Most unsent bytes: twice what all streams and their credit frames can have in transit. */
const MAX_UNSENT = 2 * MAX_STREAMS * MAX_DATA;
const MAX_NUMBER = 2 ** 32 - 1;
/** Most streams that one chunk of bytes may open: more than any program can have closed in the meantime. */
const MAX_OPENS = 4 * MAX_STREAMS;
/** Most frames that can be in transit to a stream when this side closes it. */
export const MAX_STRAYS = WINDOW / LEAST_COST + WINDOW / CREDIT_STEP + 2;

const costOf = (bytes: number) => Math.max(bytes, LEAST_COST);

export interface ChannelOptions {
  /** Called with each stream that the other side opens. Absent: it may open none. */
  onStream?: (stream: Duplex) => void;
  onEnd?: (error: Error | undefined) => void;
  /** Highest stream number that the other side may open. */
  most?: number;
  /** Number of the last stream that an earlier channel to the same guest, such as the saved one, has opened. */
  after?: number;
}

export class Channel {
  readonly #wire: Duplex;
  readonly #options: ChannelOptions;
  readonly #decoder = new FrameDecoder();
  readonly #streams = new Map<number, ChannelStream>();
  #number = 0;
  /** Streams that the latest chunk of bytes has opened. */
  #opens = 0;
  /** Frames that may still arrive for streams that this side has closed. */
  #strays = MAX_STRAYS;
  #isOver = false;

  constructor(wire: Duplex, options: ChannelOptions = {}) {
    this.#wire = wire;
    this.#options = options;
    this.#number = options.after ?? 0;
    wire.setMaxListeners(MAX_STREAMS + 16);
    wire.on("data", (chunk: Buffer) => this.#receive(chunk));
    wire.on("error", (error) => this.end(error));
    wire.on("close", () => this.end());
  }

  /** Number of the last stream. */
  get last(): number {
    return this.#number;
  }

  get streams(): number {
    return this.#streams.size;
  }

  open(): Duplex {
    if (this.#isOver) throw new ChannelError("the channel has ended");
    if (this.#streams.size >= MAX_STREAMS || this.#number >= MAX_NUMBER)
      throw new ChannelError("the channel has no stream left");
    const stream = this.#add(++this.#number);
    this.send(encodeFrame(this.#number, "open"));
    return stream;
  }

  end(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wire.destroy();
    for (const stream of this.#streams.values())
      stream.destroy(error ?? new ChannelError("the channel has ended"));
    this.#streams.clear();
    this.#options.onEnd?.(error);
  }

  /** False: the write buffer is full, so wait for `room`. */
  send(bytes: Buffer): boolean {
    if (this.#isOver) return true;
    if (this.#wire.writableLength > MAX_UNSENT) this.end(new ChannelError("the other side does not read"));
    return this.#isOver || this.#wire.write(bytes);
  }

  room(then: () => void): void {
    if (this.#isOver) then();
    else this.#wire.once("drain", then);
  }

  closed(number: number): void {
    this.#streams.delete(number);
    this.#strays += MAX_STRAYS;
  }

  #add(number: number): ChannelStream {
    const stream = new ChannelStream(this, number);
    this.#streams.set(number, stream);
    return stream;
  }

  #receive(chunk: Buffer): void {
    // Takes one chunk at a time, so that a flood on one channel does not keep the others waiting.
    this.#wire.pause();
    setImmediate(() => this.#wire.resume());
    this.#opens = 0;
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (this.#isOver) return;
        this.#take(frame);
      }
    } catch (error) {
      this.end(error as Error);
    }
  }

  #take(frame: Frame): void {
    if (frame.type === "open") {
      this.#opened(frame.stream);
      return;
    }
    const stream = this.#streams.get(frame.stream);
    if (stream !== undefined) stream.arrived(frame);
    // Drops frames that were in transit when this side closed the stream, up to a limit.
    else if (--this.#strays < 0) throw new ChannelError("frames for no stream");
  }

  /** Stream numbers must grow, so none is used twice. */
  #opened(number: number): void {
    const { onStream, most = MAX_NUMBER } = this.#options;
    if (onStream === undefined || number <= this.#number || number > most)
      throw new ChannelError("a stream that may not be opened");
    this.#number = number;
    if (++this.#opens > MAX_OPENS) throw new ChannelError("streams that come and go");
    if (this.#streams.size < MAX_STREAMS) onStream(this.#add(number));
    else {
      this.send(encodeFrame(number, "reset"));
      this.#strays += MAX_STRAYS;
    }
  }
}

class ChannelStream extends Duplex {
  readonly #channel: Channel;
  readonly #number: number;
  /** Credit of this side: bytes that it may send. */
  #credit = WINDOW;
  /** Credit of the other side: bytes that may still arrive. */
  #expected = WINDOW;
  /** Credit that small frames cost beyond their bytes, until those bytes are read. */
  #surcharge = 0;
  #waiting: (() => void) | undefined;
  #isReset = false;
  #hasEnded = false;

  constructor(channel: Channel, number: number) {
    super({ allowHalfOpen: true, readableHighWaterMark: WINDOW, writableHighWaterMark: MAX_DATA });
    this.#channel = channel;
    this.#number = number;
    // Its user may have dropped the stream, and an error without a listener would end the process.
    this.on("error", () => undefined);
  }

  arrived({ type, payload }: Frame): void {
    if (type === "data") this.#takeData(payload);
    else if (type === "credit") this.#takeCredit(payload.readUInt32BE());
    else if (type === "end") {
      this.#hasEnded = true;
      this.push(null);
    } else {
      this.#isReset = true;
      this.destroy(new ChannelError("the other side closed the stream"));
    }
  }

  #takeData(payload: Buffer): void {
    const cost = costOf(payload.length);
    this.#surcharge += cost - payload.length;
    this.#expected -= cost;
    if (this.#expected < 0 || this.#hasEnded) throw new ChannelError("more than was allowed");
    this.push(payload);
    this.#consumed();
  }

  #takeCredit(bytes: number): void {
    this.#credit += bytes;
    if (bytes === 0 || this.#credit > WINDOW) throw new ChannelError("more credit than was used");
    const go = this.#waiting;
    this.#waiting = undefined;
    go?.();
  }

  override _read(): void {
    // The channel pushes bytes as they arrive.
  }

  override read(size?: number): unknown {
    const bytes: unknown = super.read(size);
    this.#consumed();
    return bytes;
  }

  /** Returns credit for bytes that have left the stream's buffer: its user has read them. */
  #consumed(): void {
    if (this.readableLength === 0) this.#surcharge = 0;
    const free = WINDOW - this.readableLength - this.#surcharge - this.#expected;
    if (free < CREDIT_STEP || this.#hasEnded) return;
    this.#expected += free;
    this.#channel.send(encodeCredit(this.#number, free));
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#send(chunk, done);
  }

  #send(chunk: Buffer, done: (error?: Error | null) => void): void {
    if (this.destroyed) {
      done();
      return;
    }
    const length = Math.min(chunk.length, this.#credit, MAX_DATA);
    if (chunk.length > 0 && costOf(length) > this.#credit) {
      this.#waiting = () => this.#send(chunk, done);
      return;
    }
    if (length > 0) this.#credit -= costOf(length);
    const goOn = () => (length === chunk.length ? done() : this.#send(chunk.subarray(length), done));
    const isRoom =
      length === 0 || this.#channel.send(encodeFrame(this.#number, "data", chunk.subarray(0, length)));
    if (isRoom) goOn();
    else this.#channel.room(goOn);
  }

  override _final(done: () => void): void {
    this.#channel.send(encodeFrame(this.#number, "end"));
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isComplete = this.readableEnded && this.writableFinished;
    if (!isComplete && !this.#isReset) this.#channel.send(encodeFrame(this.#number, "reset"));
    this.#channel.closed(this.#number);
    this.#waiting?.();
    done(error);
  }
}
