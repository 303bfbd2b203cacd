/**
 * The events of one run for one reader: its start, its output, its files, and its answer last. The output that was sent is always a
 * prefix of the answer's field, so the rest comes from the answer. When a run is repeated from its beginning, the stream continues where
 * the first attempt stopped. If the repeated run writes something else, the stream ends with an error.
 */
import { createHash, type Hash } from "node:crypto";
import { errorBody, OUTPUT_STREAMS, type OutputStream, type PlacedEvent, ServiceError } from "@svc/contracts";
import type { EventFeed } from "@svc/job-queue";
import { type FastifyReply, type FastifyRequest, noteError, toServiceError } from "@svc/service-kit";
import { EventStream } from "./event-stream.ts";

/** Length of each output, in UTF-16 code units. */
export type Told = Record<OutputStream, number>;

/** The answer of a run, or of a round. */
type Answer = Record<string, unknown>;

const PARTIAL = { stdout: "partial_stdout", stderr: "partial_stderr" } as const;
const REPEATED = "The program was run again after a failure of the service, and wrote something else.";

export class RunStream {
  readonly #request: FastifyRequest;
  readonly #stream: EventStream;
  readonly #feed: EventFeed;
  /** Where the part of each output of the answer begins that belongs to this stream. */
  #from: Told = { stdout: 0, stderr: 0 };
  /** How far each output was sent. */
  #sent: Told = { stdout: 0, stderr: 0 };
  /** Where the outputs of the followed job begin. */
  #base: Told = { stdout: 0, stderr: 0 };
  readonly #hashes: Record<OutputStream, Hash> = {
    stdout: createHash("sha256"),
    stderr: createHash("sha256"),
  };
  #hasStarted = false;
  #following = Promise.resolve();
  #stop = new AbortController();

  constructor(request: FastifyRequest, reply: FastifyReply, feed: EventFeed) {
    this.#request = request;
    this.#stream = new EventStream(reply);
    this.#feed = feed;
  }

  get isOpen(): boolean {
    return this.#stream.isOpen;
  }

  /** Aborted when the reader has disconnected. */
  get closed(): AbortSignal {
    return this.#stream.closed;
  }

  open(): void {
    this.#stream.open();
  }

  /** Skips output that earlier answers already contained; the answer of this round repeats it. */
  passOver(told: Told): void {
    this.#from = { ...told };
    this.#sent = { ...told };
  }

  /**
   * Sends the events of a job while it runs. A further attempt replaces the one before.
   * `goesOn`: the job's output begins where earlier answers ended. `isKept`: others may read its events later.
   */
  async follow(
    jobId: string,
    { goesOn = false, isKept = false }: { goesOn?: boolean; isKept?: boolean } = {},
  ): Promise<void> {
    await this.#unfollow();
    this.#base = goesOn ? { ...this.#from } : { stdout: 0, stderr: 0 };
    this.#stop = new AbortController();
    this.#following = this.#send(jobId, isKept).catch((err: unknown) =>
      this.#request.log.warn({ err, request_id: this.#request.id }, "reading the events of a run failed"),
    );
  }

  async #send(jobId: string, isKept: boolean): Promise<void> {
    const until = AbortSignal.any([this.#stop.signal, this.#stream.closed]);
    for await (const events of this.#feed.read(jobId, until)) {
      for (const event of events) await this.#tell(event);
      if (this.#stream.isClosed) break;
    }
    if (!isKept) this.#feed.forget(jobId);
  }

  async #tell(event: PlacedEvent): Promise<void> {
    if (event.event === "started") await this.#started({ ...event });
    else await this.#output(event.event, this.#base[event.event] + event.at, event.text);
  }

  async #started({ session_id, language, version }: Answer): Promise<void> {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    await this.#stream.send("started", { session_id, language, version });
  }

  /** Sends new output. Output before the start event or after a gap is left to the answer. */
  async #output(stream: OutputStream, at: number, text: string): Promise<void> {
    const sent = this.#sent[stream];
    const unsent = text.slice(sent - at);
    if (!this.#hasStarted || at > sent || at + text.length <= sent) return;
    this.#sent[stream] = at + text.length;
    this.#hashes[stream].update(unsent, "utf16le");
    await this.#stream.send(stream, { text: unsent });
  }

  async #unfollow(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  /** Stops following a job without sending anything. */
  async abandon(): Promise<void> {
    await this.#unfollow();
  }

  /** Sends the rest of the outputs, the files, and the answer. */
  async end(answer: Answer): Promise<void> {
    await this.#unfollow();
    if (hasRun(answer)) await this.#started(answer);
    for (const stream of OUTPUT_STREAMS) {
      const text = String(answer[stream] ?? answer[PARTIAL[stream]] ?? "");
      if (!this.#isBeginningOf(text, stream))
        return this.fail(new ServiceError("sandbox_execution_failed", REPEATED));
      const rest = text.slice(this.#sent[stream]);
      if (rest !== "") await this.#stream.send(stream, { text: rest });
    }
    for (const file of filesOf(answer)) await this.#stream.send("file", file);
    await this.repeat(answer);
  }

  #isBeginningOf(text: string, stream: OutputStream): boolean {
    if (this.#sent[stream] === this.#from[stream]) return true;
    const sent = createHash("sha256").update(text.slice(this.#from[stream], this.#sent[stream]), "utf16le");
    return sent.digest().equals(this.#hashes[stream].digest());
  }

  /** Sends the answer and ends the stream. A replay gets nothing else. */
  async repeat(answer: Answer): Promise<void> {
    await this.#stream.send("result", answer);
    this.#stream.end();
  }

  /** Sends an error as the last event. Before the first event, errors are ordinary answers instead. */
  async fail(error: unknown): Promise<void> {
    await this.#unfollow();
    const failure = toServiceError(error, this.#request);
    noteError(this.#request, failure);
    await this.#stream.send("error", errorBody(failure, this.#request.id));
    this.#stream.end();
  }
}

/** New and changed files. */
function filesOf({ files }: Answer): object[] {
  return (Array.isArray(files) ? files : []).filter(
    (file: { inherited?: boolean }) => file.inherited !== true,
  );
}

/** Whether the program itself ran. After a failed compilation it did not, and the wall time is 0; a program that ran took time. */
const hasRun = ({ wall_time, language }: Answer): boolean => wall_time !== 0 && language !== undefined;
