/**
 * A mixed load: lanes side by side, in each one chain of requests after the other. Which chain comes next follows from the seed. Each
 * request has a token that is in no other one, and how it ended is told to a record, which the checker judges.
 */
import type { Answer, Api } from "@svc/test-kit/system/api";
import type { Ended, Outcome, Pair, Step } from "./checker.ts";
import { oneOf, random } from "./random.ts";

/** A wrong answer: what it says instead of what it must. */
export class Wrong extends Error {}

export function demand(isSo: boolean, what: string, found: unknown): undefined {
  if (!isSo) throw new Wrong(`${what}: ${JSON.stringify(found).slice(0, 1500)}`);
}

/** What clients saw, in ms since the load began. */
export class Seen {
  readonly ended: Ended[] = [];
  readonly pairs: Pair[] = [];
  readonly sessions = new Map<string, Step[]>();
  /** What does not hold beside single requests. */
  readonly problems: string[] = [];
  readonly began = performance.now();
  #requests = 0;
  readonly #run: string;

  /** `run`: in the tokens of this run. */
  constructor(run: string) {
    this.#run = run;
  }

  now(): number {
    return performance.now() - this.began;
  }

  /** A word that nothing else has. */
  token(): string {
    return `t-${this.#run}-${++this.#requests}-t`;
  }

  /**
   * Sends one request and judges its answer; the answer is returned when it is the one of a 200 and right. `judge` throws Wrong, or tells
   * how it ended.
   */
  async request(
    kind: string,
    token: string,
    send: () => Promise<Answer>,
    judge: (answer: Answer) => Outcome | undefined,
  ): Promise<Answer | undefined> {
    const fromMs = this.now();
    let answer: Answer | undefined;
    let outcome: Outcome;
    try {
      answer = await send();
      outcome = answer.status === 200 ? (judge(answer) ?? { as: "right" }) : refusalOf(answer);
      const foreign = this.#foreignToken(answer.text, token);
      if (foreign !== undefined)
        outcome = { as: "wrong", found: `${foreign} of another request: ${answer.text}` };
    } catch (error) {
      outcome = outcomeOf(error);
    }
    this.ended.push({ token, kind, fromMs, toMs: this.now(), outcome });
    return outcome.as === "right" ? answer : undefined;
  }

  #foreignToken(text: string, token: string): string | undefined {
    return text.match(/t-[\w.]+-\d+-t/g)?.find((found) => found !== token);
  }
}

function refusalOf(answer: Answer): Outcome {
  const { status, headers } = answer;
  const { error, request_id } = answer.refusal;
  if (request_id !== headers.get("x-request-id"))
    return { as: "wrong", found: `a refusal with the id of another request: ${answer.text}` };
  return { as: "refused", status, code: error, retryAfter: headers.get("retry-after") };
}

function outcomeOf(error: unknown): Outcome {
  const { name, message, cause } = error as Error;
  if (name === "AbortError") return { as: "left" };
  if (name === "TimeoutError") return { as: "silent" };
  // What fetch throws, when no answer came and when an answer ended early.
  if (error instanceof TypeError)
    return { as: "lost", why: `${message} ${(cause as Error | undefined)?.message ?? ""}` };
  return { as: "wrong", found: message };
}

export interface Lane {
  api: Api;
  seen: Seen;
  next: () => number;
  /** Which lane it is; no two have the same. */
  at: number;
}

export type Chain = (lane: Lane) => Promise<void>;

/** Settles when each lane has ended its last chain after so many ms. */
export async function loadFor(
  ms: number,
  { api, seen, seed }: { api: Api; seen: Seen; seed: number },
  lanes: readonly (readonly Chain[])[],
): Promise<void> {
  await Promise.all(
    lanes.map(async (chains, at) => {
      const lane = { api, seen, at, next: random("lane", seed, at) };
      while (seen.now() < ms) await oneOf(chains, lane.next)(lane);
    }),
  );
}
