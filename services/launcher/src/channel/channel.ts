/**
 * Many connections over one pair of byte streams. One side opens streams (`open`), the other is told of them (`onStream`).
 * Each direction of a stream has WINDOW bytes of credit, which come back as they are read; a small frame costs as much as it takes in
 * memory. What a channel holds is bounded by MAX_STREAMS windows in each direction, whatever the other side does. A side that sends
 * beyond its credit, on a stream that it may not open, or what is for nobody, is hostile: the channel ends, and all streams with it.
 */
import { Duplex } from "node:stream";
import { ChannelError, encodeCredit, encodeFrame, type Frame, FrameDecoder, MAX_DATA } from "./frames.ts";

export const WINDOW = 256 * 1024;
export const MAX_STREAMS = 64;
/** What a frame of data costs at least: a Buffer in the queue of a stream takes about as much, however short it is. */
export const LEAST_COST = 128;
/** Credit goes back in pieces of this size at least. */
const CREDIT_STEP = WINDOW / 4;
/** Twice what streams and their credits can have on the way. */
const MAX_UNSENT = 2 * MAX_STREAMS * MAX_DATA;
const MAX_NUMBER = 2 ** 32 - 1;
/** Streams that are opened by bytes that come at once: more than any program can have closed meanwhile. */
const MAX_OPENS = 4 * MAX_STREAMS;
/** Frames that may be on their way to a stream when it is closed here. */
export const MAX_STRAYS = WINDOW / LEAST_COST + WINDOW / CREDIT_STEP + 2;

const costOf = (bytes: number) => Math.max(bytes, LEAST_COST);

export interface ChannelOptions {
  /** Absent: the other side may open none. */
  onStream?: (stream: Duplex) => void;
  onEnd?: (error: Error | undefined) => void;
  /** Highest number of a stream that the other side may open. */
  most?: number;
  /** Number of the last stream that an earlier channel over this wire has opened. */
  after?: number;
}

export class Channel {
  readonly #wire: Duplex;
  readonly #options: ChannelOptions;
  readonly #decoder = new FrameDecoder();
  readonly #streams = new Map<number, ChannelStream>();
  #number = 0;
  /** Opened by the bytes that came last. */
  #opens = 0;
  /** Frames that may still come for streams that are closed here. */
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

  /** False: there is more than enough to be sent already; wait for `room`. */
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
    // One channel's bytes at a time: a flood on one of them does not keep the others waiting.
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
    // What was on its way when a stream was closed here is for nobody.
    else if (--this.#strays < 0) throw new ChannelError("frames for no stream");
  }

  /** The numbers grow: none comes twice. */
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
  /** Bytes that may be sent. */
  #credit = WINDOW;
  /** Bytes that may still come. */
  #expected = WINDOW;
  /** What small frames cost beyond their bytes, until these are read. */
  #surcharge = 0;
  #waiting: (() => void) | undefined;
  #isReset = false;
  #hasEnded = false;

  constructor(channel: Channel, number: number) {
    super({ allowHalfOpen: true, readableHighWaterMark: WINDOW, writableHighWaterMark: MAX_DATA });
    this.#channel = channel;
    this.#number = number;
    // Its user may have let go of it.
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
    // Bytes come by themselves.
  }

  override read(size?: number): unknown {
    const bytes: unknown = super.read(size);
    this.#consumed();
    return bytes;
  }

  /** What is not in the stream's own buffer was read. */
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
