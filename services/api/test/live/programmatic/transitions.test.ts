/** Random sequences of events, driven through the modules that make the transitions over a real Redis, against the table. */

import { AcceptedResults } from "@svc/api/programmatic/accept-results";
import { cancelProgram } from "@svc/api/programmatic/cancel";
import { completeProgram } from "@svc/api/programmatic/completion";
import { PROGRAM_CANCELLATIONS } from "@svc/api/programmatic/labels";
import { programmaticMetrics } from "@svc/api/programmatic/metrics";
import { pauseProgram } from "@svc/api/programmatic/pause";
import { nextAttempt } from "@svc/api/programmatic/resume";
import { RoundJobs } from "@svc/api/programmatic/round-jobs";
import { EVENTS, type Event, type Program, type State, TRANSITIONS } from "@svc/api/programmatic/state";
import { ProgramStore, type Snapshot } from "@svc/api/programmatic/store";
import { ContinuationTokens } from "@svc/api/programmatic/token";
import { ToolExchanges } from "@svc/api/programmatic/tool-exchanges";
import { historyKey, newId, type RecordedCall, ServiceError } from "@svc/contracts";
import { Cancellations, Counter, createLog, createRegistry } from "@svc/service-kit";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startJobs, type TestJobs } from "../../support/consumer.ts";
import { endOf, pauseOf } from "../../support/programs.ts";

let made: TestJobs;
let exchanges: ToolExchanges;
beforeAll(async () => {
  // No program is kept by a runner, so none has to be removed from one.
  made = await startJobs({ PTC_MODE: "replay" });
  exchanges = new ToolExchanges(made.config, createLog("api", made.config));
});
afterAll(async () => {
  await exchanges.close();
  await made.stop();
});

/** What one replica has. */
function replica() {
  const { config, redis, jobs } = made;
  const registry = createRegistry();
  const submitted = new Counter({
    name: "submitted",
    help: "-",
    labelNames: ["language"] as const,
    registers: [registry],
  });
  return {
    config,
    redis,
    exchanges,
    store: new ProgramStore(redis),
    cancellations: new Cancellations(redis, PROGRAM_CANCELLATIONS),
    metrics: programmaticMetrics(registry),
    tokens: new ContinuationTokens("", config.SVC_INTERNAL_SERVICE_TOKEN),
    jobs: new RoundJobs({ config, log: createLog("api", config), jobs, exchanges, submitted }),
  };
}

type Replica = ReturnType<typeof replica>;

const programOf = (id: string): Program => ({
  v: 1,
  execution_id: id,
  session_id: newId(),
  principal: { tenantId: "tenant", userId: "user" },
  output_namespace: "tenant:user:user",
  language: "python",
  version: "*",
  code: "",
  args: [],
  run_timeout: 1000,
  files: [],
  tools: [{ name: "t" }],
  hash_seed: 1,
});

/** One program, the request that makes its round, and what its callers have sent. */
class Driven {
  readonly id = newId();
  readonly program = programOf(this.id);
  state: State = "running";
  /** The record that the maker of the last round holds; none in the first round. */
  held: Snapshot | undefined;
  rounds = 0;
  /** Results by call. */
  readonly accepted = new Map<string, number>();
  #value = 0;

  async send(event: Event, here: Replica): Promise<unknown> {
    const { id, program, held } = this;
    const origin = { snapshot: held };
    switch (event) {
      case "pause":
        return pauseProgram(here, program, origin, { paused: pauseOf(this.call(this.rounds + 1)) }, "r");
      case "complete":
        return completeProgram(here, id, origin, { ended: endOf(0) }, "r");
      case "fail":
        return completeProgram(here, id, origin, { ended: endOf(1) }, "r");
      case "retry":
        if (held !== undefined) this.held = await nextAttempt(here, id, held, "sandbox_execution_failed");
        return;
      case "cancel":
        return cancelProgram(here, id, "r");
      case "expire":
        return made.redis.del(`svc:ptc:${id}`, `svc:ptc:${id}:program`, historyKey(id));
      case "results":
        return this.#results(this.#value, here);
      case "other_results":
        return this.#results(this.#value + 1, here);
    }
  }

  call(round: number): string {
    return `call_${String(round).padStart(3, "0")}`;
  }

  async #results(value: number, { config, store, metrics }: Replica): Promise<void> {
    const call_id = this.call(this.rounds);
    const continuation = { executionId: this.id, round: this.rounds };
    const results = new AcceptedResults({ config, store, metrics }, continuation, [
      { call_id, result: value },
    ]);
    this.held = (await results.accept()).snapshot;
    this.#value = value;
    if (!this.accepted.has(call_id)) this.accepted.set(call_id, value);
  }
}

/** A first round has one maker, which reports once: in other states nothing of a program without a record is sent. */
const isSent = ({ state, held }: Driven, event: Event) =>
  event !== "start" &&
  (held !== undefined || state === "running" || !["pause", "retry", "complete", "fail"].includes(event));

/** Only the record of such a program stays. */
const OVER: ReadonlySet<State> = new Set(["completed", "failed", "cancelled"]);

const codeOf = (error: unknown) => (error instanceof ServiceError ? error.code : error);

/** Sends an event and compares its outcome, and the record after it, with the table. */
async function step(driven: Driven, event: Event, here: Replica): Promise<void> {
  const { id, state } = driven;
  const transition = TRANSITIONS[state][event];
  const { snapshot: before } = await here.store.read(id);
  const refusal = await driven.send(event, here).then(() => undefined, codeOf);
  const { snapshot: after } = await here.store.read(id);
  if ("refused" in transition) {
    expect(refusal, `${state} ${event}`).toBe(transition.refused);
    expect(after).toEqual(before);
    return;
  }
  expect(refusal, `${state} ${event}`).toBeUndefined();
  expect(after?.record.status, `${state} ${event}`).toBe(
    transition.stored ? transition.next : transition.next === "expired" ? undefined : before?.record.status,
  );
  if (!transition.stored && event !== "expire") expect(after).toEqual(before);
  if (transition.stored && OVER.has(transition.next)) {
    expect(await made.redis.exists(`svc:ptc:${id}:program`, historyKey(id)), "left of the program").toBe(0);
  }
  if (event === "pause") driven.rounds++;
  driven.state = transition.next;
  if (after !== undefined) expect(await made.redis.pttl(`svc:ptc:${id}`)).toBeGreaterThan(0);
}

async function outcomesOf(id: string): Promise<[string, string][]> {
  const texts = await made.redis.lrange(historyKey(id), 0, -1);
  return texts.flatMap((text) => {
    const { call_id, outcome } = JSON.parse(text) as RecordedCall;
    return outcome !== undefined && "result_json" in outcome ? [[call_id, outcome.result_json]] : [];
  });
}

/** The events that lead to each state from the first round. */
const PATHS: Partial<Record<State, Event[]>> = {
  running: [],
  paused: ["pause"],
  resuming: ["pause", "results"],
  completed: ["pause", "results", "complete"],
  failed: ["pause", "results", "fail"],
  cancelled: ["pause", "results", "cancel"],
  expired: ["pause", "results", "expire"],
};

describe("programs in the store", () => {
  it.each(Object.entries(PATHS))("that are %s treat every event as the table says", async (state, path) => {
    for (const event of EVENTS) {
      const [driven, here] = [new Driven(), replica()];
      for (const earlier of path) await step(driven, earlier, here);
      expect(driven.state).toBe(state);
      if (isSent(driven, event)) await step(driven, event, here);
    }
  });

  it("move as the table says, whichever replica makes a transition, and accept one result for a call", async () => {
    const replicas = [replica(), replica()];
    const events = fc.array(
      fc.record({
        // Ends are rare, so that most sequences have several rounds.
        event: fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom<Event>("pause", "results") },
          { weight: 1, arbitrary: fc.constantFrom<Event>(...EVENTS) },
        ),
        at: fc.integer({ min: 0, max: 1 }),
      }),
      { minLength: 1, maxLength: 24 },
    );
    await fc.assert(
      fc.asyncProperty(events, async (sequence) => {
        const driven = new Driven();
        for (const { event, at } of sequence) {
          if (!isSent(driven, event)) continue;
          await step(driven, event, replicas[at] as Replica);
        }
        if (driven.state === "paused" || driven.state === "resuming") {
          const accepted = [...driven.accepted].map(([call, value]) => [call, String(value)]);
          expect(await outcomesOf(driven.id)).toEqual(accepted);
        }
      }),
      { numRuns: 400 },
    );
  });
});
