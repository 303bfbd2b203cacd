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
  /** The program cannot write to the file, because another user owns it. It can put another file in its place. */
  readOnly: boolean;
  /** Permission bits, at most 0o777, and without write bits when read-only. Default: 0o644, when read-only 0o444. */
  mode?: number;
}

export interface FetchedFile {
  size: number;
  body: AsyncGenerator<Buffer>;
}

/** Health of jaild. It makes jails before they are needed, so it may be failing while some are left. */
export interface JaildPulse {
  /** Time for which its main process has made no progress. */
  silentMs: number;
  /** Time for which it has failed to make further jails. 0: it does not fail. */
  failingMs: number;
}

/** A jaild that was started before an update of the runner may send no pulse. */
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
  /** Health of jaild when it handed out this jail. */
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
   * Requests a warm start; call it before everything else. A process of the zygote then waits in the jail for its job, which may come
   * at any time. False: there is no such process now, and the program will start cold.
   */
  async warm(zygote: string): Promise<boolean> {
    this.#post(frame("W", Buffer.from(zygote)));
    return this.#born();
  }

  /**
   * Pre-starts an interpreter with the command, environment and limits that most of its programs have; call it before everything
   * else. The interpreter waits in the jail for its job, which may come at any time.
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

  /** From now on only an abort of this signal closes the connection. */
  tie(signal: AbortSignal): void {
    this.#release();
    this.#release = tie(this.#connection, signal);
  }

  /** Calls `listener` when the jail is gone. For a run that still waits for its job. */
  onGone(listener: () => void): void {
    this.#connection.onGone(listener);
  }

  /**
   * Sends what to run. Arguments and variables must not contain NUL, and the path of the program is absolute. The frames may stay
   * in the send buffer until the start, or until it is full.
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
   * Requests a whole listing of the workspace. It also has the content of hidden directories, every directory, and the targets of
   * symlinks. The request is part of the job, so it comes after a pre-start.
   */
  listEverything(): void {
    this.#post(frame("V"));
  }

  /** Requests output while the program runs, instead of only when it pauses or ends. The request is part of the job. */
  tellOutput(): void {
    this.#post(frame("O"));
  }

  /**
   * Stages a directory that the program owns, with permission bits (at most 0o777). An existing directory gets these bits, too.
   * Settles when more may be sent; a failure shows at the start.
   */
  async directory(index: number, path: string, mode = 0o755): Promise<void> {
    await this.#postInTurn(frame("D", u32(index), u16(mode), Buffer.from(path)));
  }

  /**
   * Stages a symlink that the program owns. It is not an input, so it has no index, and nothing can be staged through it.
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

  /** Starts the program; settles when jaild reports the start. */
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

  /** Whether the program started in a process that existed before. */
  get startedWarm(): boolean {
    return this.#startedWarm;
  }

  /** A number that the zygote reported about the warm process. For Python it is the hash seed. */
  get zygoteWord(): number | undefined {
    return this.#zygoteWord;
  }

  /** Waits for the end of the program and the listing of its workspace. Call it at any time after the start, even during a pause. */
  outcome(): Promise<RunOutcome> {
    return this.#talk().outcome;
  }

  /** Asks what the program does now. Undefined if it has ended. One question or pause at a time. */
  query(): Promise<TaskState | undefined> {
    return this.#talk().ask("q", () => this.#post(frame("Q")));
  }

  /** Pauses every process of the program, in whatever state it is. Undefined if the program has ended. */
  pause(): Promise<RunPause | undefined> {
    return this.#talk().ask("p", () => this.#post(frame("P")));
  }

  /** Pauses the program if it is `blocked`. Otherwise returns its state, or undefined if it has ended. */
  pauseIfBlocked(): Promise<RunPause | TaskState | undefined> {
    return this.#talk().ask("qp", () => this.#post(frame("T")));
  }

  /** Resumes a paused program for at most `wallMs` from now. 0: for the rest of its time. */
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

  /** True if the jail has ended, so that its slot may belong to another run. */
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

  /** For frames of which there may be thousands. Waits for room in the send buffer; the next step that needs jaild reports a failure. */
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
