/**
 * Reads what jaild sends from the start of a program to the listing of its workspace. jaild answers questions in their order. The end
 * of the program may come at any time, and also settles an open question. Nothing else reads the connection meanwhile. Output is
 * collected whenever it arrives: while the program runs, before a pause, and at the end.
 */
import { refuseError } from "./errors.ts";
import { type Frame, ProtocolError } from "./frames.ts";
import { listingOf, pauseOf, resultOf, Stream, stateOf } from "./outcome.ts";
import type { RunOutcome, RunPause, TaskState } from "./types.ts";

type Answer = TaskState | RunPause;

/** Receives output as it arrives. The dialogue keeps the same bytes, so the callback must not change them. */
export type OnOutput = (stream: "stdout" | "stderr", bytes: Buffer) => void;

/** Settled with `undefined` if the program ended first. */
interface Question {
  /** Tags of the frames that may answer it. */
  tags: string;
  settle: (answer: Answer | undefined) => void;
  reject: (error: unknown) => void;
}

export class Dialogue {
  readonly #next: () => Promise<Frame>;
  readonly #stdout: Stream;
  readonly #stderr: Stream;
  readonly #onOutput: OnOutput | undefined;
  #open: Question | undefined;
  #over = false;
  /** The end of the program and the listing. */
  readonly outcome: Promise<RunOutcome>;

  /** `explain` turns a failure of the connection into the error that a question rejects with. */
  constructor(
    next: () => Promise<Frame>,
    caps: { stdout: number; stderr: number },
    explain: (error: unknown) => Promise<unknown>,
    onOutput?: OnOutput,
  ) {
    this.#onOutput = onOutput;
    this.#next = async () => refuseError(await next(), true);
    this.#stdout = new Stream(caps.stdout);
    this.#stderr = new Stream(caps.stderr);
    this.outcome = this.#read().catch(async (error: unknown) => {
      const reason = await explain(error);
      this.#end((question) => question.reject(reason));
      throw reason;
    });
    this.outcome.catch(() => undefined);
  }

  async #read(): Promise<RunOutcome> {
    let received = await this.#next();
    for (; received.tag !== "x"; received = await this.#next()) {
      if (!this.#collect(received)) this.#answer(received);
    }
    const end = resultOf(received.payload);
    this.#end((question) => question.settle(undefined));
    do {
      received = await this.#next();
    } while (this.#collect(received));
    const listing = await listingOf(received, this.#next);
    return { end, stdout: this.#stdout.bytes(), stderr: this.#stderr.bytes(), listing };
  }

  #collect({ tag, payload }: Frame): boolean {
    if (tag !== "1" && tag !== "2") return false;
    (tag === "1" ? this.#stdout : this.#stderr).push(payload);
    this.#onOutput?.(tag === "1" ? "stdout" : "stderr", payload);
    return true;
  }

  #answer({ tag, payload }: Frame): void {
    const question = this.#open;
    if (question === undefined || !question.tags.includes(tag))
      throw new ProtocolError(`unexpected frame ${tag}`);
    const answer = tag === "q" ? stateOf(payload) : this.#pause(payload);
    this.#open = undefined;
    question.settle(answer);
  }

  #pause(payload: Buffer): RunPause {
    return { ...pauseOf(payload), stdout: this.#stdout.bytes(), stderr: this.#stderr.bytes() };
  }

  #end(settle: (question: Question) => void): void {
    this.#over = true;
    if (this.#open !== undefined) settle(this.#open);
    this.#open = undefined;
  }

  /** One question at a time; `post` sends it. Undefined when the program ended first: `outcome` tells how. */
  ask(tag: "q", post: () => void): Promise<TaskState | undefined>;
  ask(tag: "p", post: () => void): Promise<RunPause | undefined>;
  ask(tags: "qp", post: () => void): Promise<Answer | undefined>;
  async ask(tags: string, post: () => void): Promise<Answer | undefined> {
    if (this.#open !== undefined) throw new Error("another question is open");
    if (this.#over) {
      await this.outcome;
      return undefined;
    }
    return new Promise<Answer | undefined>((settle, reject) => {
      this.#open = { tags, settle, reject };
      post();
    });
  }
}
