/**
 * One run in the jail: stage, start, pause and resume, wait for the outcome, fetch files, close. Closing at any time kills
 * the run.
 * Every failure is a JailError; `started` tells whether the program may have run.
 */
import { Connection } from "./connection.ts";
import { Dialogue, type OnOutput } from "./dialogue.ts";
import { asJailError, expectTag, refuseError } from "./errors.ts";
import { CHUNK_BYTES, Fields, frame, frameHead, ProtocolError, u16, u32, u64 } from "./frames.ts";
import { JailError, type JailLimits, type RunOutcome, type RunPause, type TaskState } from "./types.ts";

const PROTOCOL_VERSION = 2;

export type Body = Buffer | AsyncIterable<Buffer>;

export interface StagedFile {
  index: number;
  path: string;
  size: number;
  /** The program may not write it: it belongs to somebody else. The program may put another file in its place. */
  readOnly: boolean;
  /** Permission bits, at most 0o777, and without write bits when read-only. Default: 0o644, when read-only 0o444. */
  mode?: number;
}

export interface FetchedFile {
  size: number;
  body: AsyncGenerator<Buffer>;
}

/** Jails are made before they are needed, so that jaild may fail while some are left. */
export interface JaildPulse {
  /** How long its main process has stood still. */
  silentMs: number;
  /** Since when it has not been able to make further jails; 0: it is. */
  failingMs: number;
}

/** A jaild that runs since before an update of the runner tells nothing. */
function pulseIn(fields: Fields): JaildPulse {
  return fields.left === 0
    ? { silentMs: 0, failingMs: 0 }
    : { silentMs: fields.u32(), failingMs: fields.u32() };
}

function tie(connection: Connection, signal: AbortSignal): () => void {
  const abort = () => connection.destroy(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return () => signal.removeEventListener("abort", abort);
}

export class JailRun {
  readonly slot: number;
  /** How jaild did when it gave this jail. */
  readonly pulse: JaildPulse;
  readonly #connection: Connection;
  #release: () => void;
  #caps = { stdout: 0, stderr: 0 };
  #dialogue: Dialogue | undefined;
  #startedWarm = false;
  #zygoteWord: number | undefined;

  private constructor(connection: Connection, slot: number, pulse: JaildPulse, release: () => void) {
    this.#connection = connection;
    this.slot = slot;
    this.pulse = pulse;
    this.#release = release;
  }

  /** Takes a ready slot. An aborted signal closes the connection, which kills the run. */
  static async open(socketPath: string, signal: AbortSignal): Promise<JailRun> {
    signal.throwIfAborted();
    const connection = new Connection(socketPath);
    const release = tie(connection, signal);
    try {
      const fields = new Fields(expectTag(await connection.next(), "h", false).payload);
      if (fields.u32() !== PROTOCOL_VERSION) throw new ProtocolError("version differs");
      const slot = fields.u32();
      const pulse = pulseIn(fields);
      fields.end();
      return new JailRun(connection, slot, pulse, release);
    } catch (error) {
      release();
      connection.destroy();
      throw asJailError(error, false);
    }
  }

  /**
   * Asks for a warm start, before everything else: a process that waits for its job in the jail, which may then come
   * at any time. False: there is none now, and the program will start cold.
   */
  async warm(zygote: string): Promise<boolean> {
    this.#post(frame("W", Buffer.from(zygote)));
    return this.#born();
  }

  /**
   * Pre-starts an interpreter with the command, environment and limits that most of its programs have; it waits in the jail
   * for its job, which may then come at any time. Before everything else.
   */
  async prestart(argv: readonly string[], env: readonly string[], limits: JailLimits): Promise<boolean> {
    this.describe(argv, env, limits);
    this.#post(frame("S"));
    this.#connection.release();
    return this.#born();
  }

  #born(): Promise<boolean> {
    return this.#guard(
      this.#connection.next().then((received) => {
        const fields = new Fields(expectTag(received, "w", false).payload);
        const born = fields.u8() !== 0;
        const word = fields.u32();
        fields.end();
        if (born) this.#zygoteWord = word;
        return born;
      }),
    );
  }

  /** From here on this signal's abort closes the connection, and no other's. */
  tie(signal: AbortSignal): void {
    this.#release();
    this.#release = tie(this.#connection, signal);
  }

  /** Called when the jail is gone; for a run that waits for its job. */
  onGone(listener: () => void): void {
    this.#connection.onGone(listener);
  }

  /**
   * What to run. Arguments and variables must hold no NUL; the program's path is absolute. It may stay here until the
   * start, or until there is much to send.
   */
  describe(argv: readonly string[], env: readonly string[], limits: JailLimits): void {
    this.#caps = { stdout: limits.stdoutCap, stderr: limits.stderrCap };
    this.#connection.hold();
    for (const item of argv) this.#post(frame("A", Buffer.from(item)));
    for (const item of env) this.#post(frame("E", Buffer.from(item)));
    const l = limits;
    const sizes = [l.wallMs, l.cpuMs, l.memoryBytes, l.processes, l.openFiles, l.fileBytes];
    const values = [...sizes, l.stdoutCap, l.stderrCap, l.killFactor, 0];
    this.#post(frame("L", ...values.map(u64)));
  }

  /**
   * Makes the listing of the workspace whole: with what lies in hidden directories, every directory, and the targets of
   * symlinks. Part of the job, so after a pre-start.
   */
  listEverything(): void {
    this.#post(frame("V"));
  }

  /** Has output sent while the program runs, instead of when it pauses or ends. Part of the job. */
  tellOutput(): void {
    this.#post(frame("O"));
  }

  /**
   * A directory that belongs to the program, with its permission bits (at most 0o777). One that is there already is given
   * them. Settles when more may be sent; a failure shows at the start.
   */
  async directory(index: number, path: string, mode = 0o755): Promise<void> {
    await this.#postInTurn(frame("D", u32(index), u16(mode), Buffer.from(path)));
  }

  /**
   * A symlink that belongs to the program. It is no input, so it has no index, and nothing can be staged through it.
   * `target`: 1 to 4095 bytes without NUL, never resolved. Settles when more may be sent; a failure shows at the start.
   */
  async symlink(path: string, target: string | Buffer): Promise<void> {
    await this.#postInTurn(frame("Y", Buffer.from(`${path}\0`), Buffer.from(target)));
  }

  async file(file: StagedFile, body: Body): Promise<void> {
    const { index, path, size, readOnly } = file;
    const mode = file.mode ?? (readOnly ? 0o444 : 0o644);
    const head = [u32(index), Buffer.from([readOnly ? 1 : 0]), u16(mode), u64(size)];
    this.#post(frame("F", ...head, Buffer.from(path)));
    await this.#sendBody(body, size);
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
  async start(onOutput?: OnOutput): Promise<void> {
    this.#post(frame("R"));
    this.#connection.release();
    await this.#guard(
      this.#connection.next().then((received) => {
        const fields = new Fields(expectTag(received, "s", false).payload);
        this.#startedWarm = fields.u8() !== 0;
        fields.end();
        this.#dialogue = new Dialogue(
          () => this.#connection.next(),
          this.#caps,
          (error) => this.#explain(error),
          onOutput,
        );
      }),
    );
  }

  /** Whether the program began in a process that was there before. */
  get startedWarm(): boolean {
    return this.#startedWarm;
  }

  /** What the zygote has told of a process that is born warm: of Python's the hash seed. */
  get zygoteWord(): number | undefined {
    return this.#zygoteWord;
  }

  /** Waits for the end of the program and the listing of its workspace; any time after the start, also while it is paused. */
  outcome(): Promise<RunOutcome> {
    return this.#talk().outcome;
  }

  /** What the program does now. Undefined when it has ended. One question or pause at a time. */
  query(): Promise<TaskState | undefined> {
    return this.#talk().ask("q", () => this.#post(frame("Q")));
  }

  /** Stops every process of the program, wherever it is. Undefined when it has ended. */
  pause(): Promise<RunPause | undefined> {
    return this.#talk().ask("p", () => this.#post(frame("P")));
  }

  /** Stops a program that only something from outside can move; otherwise says what it does. Undefined when it has ended. */
  pauseIfBlocked(): Promise<RunPause | TaskState | undefined> {
    return this.#talk().ask("qp", () => this.#post(frame("T")));
  }

  /** Lets a paused program go on, for at most `wallMs` from now; 0: for what was left of its time. */
  resume(wallMs: number): void {
    this.#post(frame("C", u64(wallMs)));
  }

  #talk(): Dialogue {
    if (this.#dialogue === undefined) throw new Error("the program was not started");
    return this.#dialogue;
  }

  /** The bytes of a listed file. One fetch at a time; undefined when the file cannot be read. */
  async fetch(number: number): Promise<FetchedFile | undefined> {
    this.#post(frame("G", u32(number)));
    return this.#guard(this.#readHead(number));
  }

  async #readHead(number: number): Promise<FetchedFile | undefined> {
    const head = await this.#connection.next();
    const fields = new Fields(refuseError(head, true).payload);
    if (head.tag !== "n") expectTag(head, "g", true);
    if (fields.u32() !== number) throw new ProtocolError("another file came");
    const size = head.tag === "g" ? fields.u64() : undefined;
    fields.end();
    return size === undefined ? undefined : { size, body: this.#body(size) };
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

  /** The jail has ended, so its slot may be another run's. */
  get isGone(): boolean {
    return this.#connection.isGone;
  }

  /** Ends the connection; a run that is still going is killed. */
  close(): void {
    this.#release();
    this.#connection.destroy();
  }

  #post(bytes: Buffer): void {
    this.#connection.send(bytes)?.catch(() => undefined);
  }

  /** For frames of which there may be thousands: waits for room, and leaves a failure to the next step that needs jaild. */
  async #postInTurn(bytes: Buffer): Promise<void> {
    await this.#connection.send(bytes)?.catch(() => undefined);
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
    if (error instanceof ProtocolError) return asJailError(error, this.#dialogue !== undefined);
    try {
      for (;;) refuseError(await this.#connection.next(), this.#dialogue !== undefined);
    } catch (reason) {
      const told = reason instanceof JailError && reason.kind !== "gone";
      return asJailError(told ? reason : error, this.#dialogue !== undefined);
    }
  }
}
