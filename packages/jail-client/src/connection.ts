/** The socket to jaild as a stream of frames in both directions, with back-pressure both ways. */
import { connect, type Socket } from "node:net";
import { type Frame, FrameDecoder } from "./frames.ts";
import { JailError } from "./types.ts";

/** Received bytes that may wait before the socket is paused. */
const HIGH_WATER = 4 << 20;

/** The error for a caller that still uses a connection after this side has closed it. */
const CLOSED = new JailError("gone", false, "the connection to jaild was closed");

interface Reader {
  resolve: (frame: Frame) => void;
  reject: (error: unknown) => void;
}

export class Connection {
  readonly #socket: Socket;
  readonly #decoder = new FrameDecoder();
  readonly #frames: Frame[] = [];
  #queued = 0;
  #reader: Reader | undefined;
  #failure: unknown;
  /** Pending while the send buffer is full. */
  #room: Promise<void> | undefined;

  constructor(socketPath: string) {
    this.#socket = connect(socketPath);
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () =>
      this.#fail(this.#failure ?? new JailError("gone", false, "jaild closed the connection")),
    );
  }

  #receive(chunk: Buffer): void {
    try {
      for (const frame of this.#decoder.push(chunk)) this.#deliver(frame);
    } catch (error) {
      this.destroy(error);
    }
  }

  #deliver(frame: Frame): void {
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      reader.resolve(frame);
      return;
    }
    this.#frames.push(frame);
    this.#queued += frame.payload.length;
    if (this.#queued > HIGH_WATER) this.#socket.pause();
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#reader?.reject(this.#failure);
    this.#reader = undefined;
  }

  get isGone(): boolean {
    return this.#failure !== undefined;
  }

  onGone(listener: () => void): void {
    this.#socket.once("close", listener);
  }

  /** The next frame. One call at a time. */
  next(): Promise<Frame> {
    const frame = this.#frames.shift();
    if (frame !== undefined) {
      this.#queued -= frame.payload.length;
      if (this.#queued <= HIGH_WATER && this.#socket.isPaused()) this.#socket.resume();
      return Promise.resolve(frame);
    }
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Sends bytes. Returns a promise that settles when more may be sent, or undefined if that is now. */
  send(bytes: Buffer): Promise<void> | undefined {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#socket.write(bytes)) return undefined;
    this.release();
    this.#room ??= this.#untilDrained();
    return this.#room;
  }

  /** All senders share this wait. */
  #untilDrained(): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#room = undefined;
        this.#socket.off("drain", settle);
        this.#socket.off("close", settle);
        if (this.#failure === undefined) resolve();
        else reject(this.#failure);
      };
      this.#socket.once("drain", settle);
      this.#socket.once("close", settle);
    });
  }

  /** Buffers sent bytes until `release`, or until the send buffer is full. They then go out with one system call. */
  hold(): void {
    if (this.#socket.writableCorked === 0) this.#socket.cork();
  }

  release(): void {
    this.#socket.uncork();
  }

  destroy(reason: unknown = CLOSED): void {
    this.#failure ??= reason;
    this.#socket.destroy();
  }
}
