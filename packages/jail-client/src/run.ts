/**
 * One run in the jail: stage, start, wait for the outcome, fetch files, close. Closing at any time kills the run.
 * Every failure is a JailError; `started` tells whether the program may have run.
 */
import { Connection } from "./connection.ts";
import { CHUNK_BYTES, Fields, type Frame, frame, frameHead, ProtocolError, u32, u64 } from "./frames.ts";
import { listingOf, resultOf } from "./outcome.ts";
import { errorKind, JailError, type JailLimits, type RunOutcome } from "./types.ts";

const PROTOCOL_VERSION = 1;
const READ_ONLY_FLAG = 1;

export type Body = Buffer | AsyncIterable<Buffer>;

export interface StagedFile {
  index: number;
  path: string;
  size: number;
  readOnly: boolean;
}

export class JailRun {
  readonly slot: number;
  readonly #connection: Connection;
  #started = false;

  private constructor(connection: Connection, slot: number) {
    this.#connection = connection;
    this.slot = slot;
  }

  /** Takes a ready slot. An aborted signal closes the connection, which kills the run. */
  static async open(socketPath: string, signal: AbortSignal): Promise<JailRun> {
    signal.throwIfAborted();
    const connection = new Connection(socketPath);
    const abort = () => connection.destroy(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const fields = new Fields(expectTag(await connection.next(), "h", false).payload);
      if (fields.u32() !== PROTOCOL_VERSION) throw new ProtocolError("version differs");
      return new JailRun(connection, fields.u32());
    } catch (error) {
      connection.destroy();
      throw asJailError(error, false);
    }
  }

  describe(argv: readonly string[], env: readonly string[], limits: JailLimits): void {
    this.#connection.batch(() => {
      for (const item of argv) this.#post(frame("A", Buffer.from(item)));
      for (const item of env) this.#post(frame("E", Buffer.from(item)));
      const {
        wallMs,
        cpuMs,
        memoryBytes,
        processes,
        openFiles,
        fileBytes,
        stdoutCap,
        stderrCap,
        killFactor,
      } = limits;
      const values = [
        wallMs,
        cpuMs,
        memoryBytes,
        processes,
        openFiles,
        fileBytes,
        stdoutCap,
        stderrCap,
        killFactor,
        0,
      ];
      this.#post(frame("L", ...values.map(u64)));
    });
  }

  directory(index: number, path: string): void {
    this.#post(frame("D", u32(index), Buffer.from(path)));
  }

  async file(file: StagedFile, body: Body): Promise<void> {
    const flags = Buffer.from([file.readOnly ? READ_ONLY_FLAG : 0]);
    this.#post(frame("F", u32(file.index), flags, u64(file.size), Buffer.from(file.path)));
    await this.#sendBody(body, file.size);
  }

  async stdin(bytes: Buffer): Promise<void> {
    this.#post(frame("I", u64(bytes.length)));
    await this.#sendBody(bytes, bytes.length);
  }

  async #sendBody(body: Body, size: number): Promise<void> {
    let sent = 0;
    for await (const bytes of Buffer.isBuffer(body) ? [body] : body) {
      sent += bytes.length;
      if (sent > size) throw new RangeError("more bytes than announced");
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        const chunk = bytes.subarray(at, at + CHUNK_BYTES);
        this.#post(frameHead("B", chunk.length));
        await this.#guard(this.#connection.send(chunk));
      }
    }
    if (sent !== size) throw new RangeError("fewer bytes than announced");
  }

  /** Starts the program; settles when it has been executed. */
  async start(): Promise<void> {
    this.#post(frame("R"));
    await this.#guard(
      this.#connection.next().then((received) => {
        expectTag(received, "s", false);
        this.#started = true;
      }),
    );
  }

  /** Waits for the end of the program and the listing of its workspace. */
  async outcome(): Promise<RunOutcome> {
    return this.#guard(this.#readOutcome());
  }

  async #readOutcome(): Promise<RunOutcome> {
    const next = async () => refuseError(await this.#connection.next(), true);
    const end = resultOf(expectTag(await next(), "x", true).payload);
    const streams: Record<string, Buffer[]> = { "1": [], "2": [] };
    let received = await next();
    for (let stream = streams[received.tag]; stream !== undefined; stream = streams[received.tag]) {
      stream.push(received.payload);
      received = await next();
    }
    const listing = await listingOf(received, next);
    return {
      end,
      stdout: Buffer.concat(streams["1"] ?? []),
      stderr: Buffer.concat(streams["2"] ?? []),
      listing,
    };
  }

  /** The bytes of a listed file. One fetch at a time; undefined when the file cannot be read. */
  async fetch(number: number): Promise<{ size: number; body: AsyncGenerator<Buffer> } | undefined> {
    this.#post(frame("G", u32(number)));
    const head = await this.#guard(this.#connection.next());
    const fields = new Fields(refuseError(head, true).payload);
    if (fields.u32() !== number) throw asJailError(new ProtocolError("another file came"), true);
    if (head.tag === "n") return undefined;
    expectTag(head, "g", true);
    const size = fields.u64();
    return { size, body: this.#body(size) };
  }

  async *#body(size: number): AsyncGenerator<Buffer> {
    let left = size;
    while (left > 0) {
      const { payload } = expectTag(await this.#guard(this.#connection.next()), "b", true);
      left -= payload.length;
      if (left < 0 || payload.length === 0) throw asJailError(new ProtocolError("wrong file size"), true);
      yield payload;
    }
  }

  /** Ends the connection; a run that is still going is killed. */
  close(): void {
    this.#connection.destroy();
  }

  #post(bytes: Buffer): void {
    this.#connection.send(bytes)?.catch(() => undefined);
  }

  async #guard<T>(step: Promise<T> | T): Promise<T> {
    try {
      return await step;
    } catch (error) {
      throw await this.#explain(error);
    }
  }

  /** A broken connection may have an error frame waiting that says why. */
  async #explain(error: unknown): Promise<unknown> {
    if (error instanceof JailError && error.kind !== "gone") return error;
    try {
      for (;;) refuseError(await this.#connection.next(), this.#started);
    } catch (reason) {
      return asJailError(
        reason instanceof JailError && reason.kind !== "gone" ? reason : error,
        this.#started,
      );
    }
  }
}

function refuseError(received: Frame, started: boolean): Frame {
  if (received.tag !== "e") return received;
  const fields = new Fields(received.payload);
  const kind = errorKind(fields.u8());
  const errno = fields.u32();
  throw new JailError(kind, started, `${fields.rest().toString("utf8").slice(0, 500)} (errno ${errno})`);
}

function expectTag(received: Frame, tag: string, started: boolean): Frame {
  if (refuseError(received, started).tag !== tag) throw new ProtocolError(`unexpected frame ${received.tag}`);
  return received;
}

/** Aborts travel as they are; everything else becomes a JailError. */
function asJailError(error: unknown, started: boolean): unknown {
  if (error instanceof JailError) return new JailError(error.kind, started, error.message);
  if (error instanceof ProtocolError) return new JailError("protocol", started, error.message);
  const { syscall, code } = (error ?? {}) as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new JailError("gone", started, `the connection to jaild failed: ${code}`);
}
