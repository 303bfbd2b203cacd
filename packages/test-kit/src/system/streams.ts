/**
 * Answers of the public API as server-sent events, for tests: each event as soon as it has come. An answer of another form throws when it
 * is read, and so does a body that is not made of whole events and comments. Knows nothing of the system behind the address.
 */

import { slow } from "../jail/slowness.ts";
import { Answer, type SendOptions } from "./api.ts";
import { expectDocumented } from "./conformance.ts";

export interface StreamEvent {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its events hold
  data: any;
}

/** No stream of a test lasts longer than this. */
const STREAM_MS = slow(115_000);
const COMMENT = ":";
const EVENT = /^event: ([a-z]+)\ndata: ([^\n]*)$/;

export const EVENTS = "text/event-stream";

export class EventAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Events that have come so far. */
  readonly events: StreamEvent[] = [];
  /** Comments that have come so far. */
  comments = 0;
  /** Closes the connection. */
  readonly leave: () => void;
  readonly #response: Response;
  readonly #check: (text: string) => void;
  #text = "";

  constructor(response: Response, leave: () => void, check: (text: string) => void) {
    this.status = response.status;
    this.headers = response.headers;
    this.#response = response;
    this.leave = leave;
    this.#check = check;
    this.#coming = this.#read();
  }

  readonly #coming: AsyncGenerator<StreamEvent, void>;

  /** Events as they come, with comments as events without a name. */
  async *#read(): AsyncGenerator<StreamEvent, void> {
    if (!this.headers.get("content-type")?.startsWith(EVENTS))
      throw new Error(`no events: ${this.status} ${(await this.#response.text()).slice(0, 2000)}`);
    let begun = "";
    for await (const text of (this.#response.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(
      new TextDecoderStream("utf-8", { fatal: true }),
    )) {
      this.#text += text;
      const blocks = (begun + text).split("\n\n");
      begun = blocks.pop() ?? "";
      for (const block of blocks) yield this.#take(block);
    }
    if (begun !== "") throw new Error(`the stream ends within an event: ${begun.slice(0, 200)}`);
    this.#check(this.#text);
  }

  #take(block: string): StreamEvent {
    if (block === COMMENT) {
      this.comments++;
      return { event: "", data: undefined };
    }
    const [, event, data] = EVENT.exec(block) ?? [];
    if (event === undefined || data === undefined) throw new Error(`no event: ${JSON.stringify(block)}`);
    const taken = { event, data: JSON.parse(data) };
    this.events.push(taken);
    return taken;
  }

  /** Reads until an event has come that is wanted; the connection stays open. */
  async until(wanted: (event: StreamEvent) => boolean): Promise<StreamEvent> {
    for (;;) {
      const { value } = await this.#coming.next();
      if (value === undefined) throw new Error(`it did not come: ${JSON.stringify(this.events)}`);
      if (wanted(value)) return value;
    }
  }

  /** Reads to the end. */
  async all(): Promise<StreamEvent[]> {
    while (!(await this.#coming.next()).done);
    return this.events;
  }

  /** The answer when it has another form. */
  async answer(): Promise<Answer> {
    const bytes = Buffer.from(await this.#response.arrayBuffer());
    return new Answer(this.status, this.headers, bytes);
  }
}

/** POST of a body; settles when the head of the answer has come. */
export async function openStream(
  url: string,
  path: string,
  body: unknown,
  { headers, signal }: Omit<SendOptions, "body"> = {},
): Promise<EventAnswer> {
  const left = new AbortController();
  const signals = [left.signal, AbortSignal.timeout(STREAM_MS), ...(signal === undefined ? [] : [signal])];
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { accept: EVENTS, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.any(signals),
  });
  const came = (text: string) => ({ status: response.status, headers: response.headers, text });
  const { pathname } = new URL(`${url}${path}`);
  return new EventAnswer(
    response,
    () => left.abort(),
    (text) => expectDocumented("POST", pathname, came(text)),
  );
}

/** A run with events, to its end. */
export const streamed = async (
  url: string,
  body: unknown,
  options: Omit<SendOptions, "body"> = {},
): Promise<StreamEvent[]> => (await openStream(url, "/exec", body, options)).all();

export const namesOf = (events: readonly StreamEvent[]): string[] => events.map(({ event }) => event);

/** What the events of an output say together. */
export const joined = (events: readonly StreamEvent[], stream: "stdout" | "stderr"): string =>
  events
    .filter(({ event }) => event === stream)
    .map(({ data }) => data.text)
    .join("");

/** The last event's data; throws unless it is a result. */
export function resultOf<T>(events: readonly StreamEvent[]): T {
  const last = events.at(-1);
  if (last?.event !== "result") throw new Error(`no result: ${JSON.stringify(last)}`);
  return last.data;
}
