/** The table of states against a second, independent statement of it: every state, every event. */
import { existsSync } from "node:fs";
import { EVENTS, type Event, nextState, STATES, type State, TRANSITIONS } from "@svc/api/programmatic/state";
import { ERRORS, type ErrorCode } from "@svc/contracts";
import { describe, expect, it } from "vitest";

/** States to which a program moves; `-`: 400 execution_expired, `x`: 503 store_unavailable, `c`: 409 execution_cancelled,
 * `!`: 409 continuation_conflict. */
const EXPECTED = `
            start    pause    results    other_results  retry      complete   fail    cancel     expire
created     running  x        -          -              x          x          failed  cancelled  created
running     x        paused   -          -              running    completed  failed  cancelled  running
paused      x        x        resuming   resuming       x          x          x       cancelled  expired
resuming    x        paused   resuming   !              resuming   completed  failed  cancelled  expired
completed   x        x        -          -              x          x          x       completed  expired
failed      x        x        -          -              x          x          x       failed     expired
cancelled   x        c        -          -              c          c          c       cancelled  expired
expired     x        -        -          -              -          -          -       expired    expired
`;
const REFUSALS: Record<string, [ErrorCode, number]> = {
  "-": ["execution_expired", 400],
  x: ["store_unavailable", 503],
  c: ["execution_cancelled", 409],
  "!": ["continuation_conflict", 409],
};
const [head = "", ...lines] = EXPECTED.trim().split("\n");
const events = head.trim().split(/ +/) as Event[];
const cases = lines.flatMap((line) => {
  const [state, ...cells] = line.split(/ +/);
  return cells.map((cell, at) => [state as State, events[at] as Event, cell] as const);
});

describe("the transitions of a program", () => {
  it("are stated here for every state and event", () => {
    expect(cases.map(([state, event]) => `${state} ${event}`).sort()).toEqual(
      STATES.flatMap((state) => EVENTS.map((event) => `${state} ${event}`)).sort(),
    );
  });

  it.each(cases)("%s, event %s: %s", (state, event, cell) => {
    const refusal = REFUSALS[cell];
    if (refusal === undefined) expect(nextState(state, event)).toBe(cell);
    else expect(() => nextState(state, event)).toThrow(expect.objectContaining({ code: refusal[0] }));
  });

  it.each(Object.values(REFUSALS))("are refused with a documented error: %s is %i", (code, status) => {
    expect(ERRORS[code].status).toBe(status);
  });

  it("name the module that makes them", () => {
    for (const transition of Object.values(TRANSITIONS).flatMap((events) => Object.values(events))) {
      if ("refused" in transition) continue;
      const file = new URL(`../../../src/programmatic/${transition.by}.ts`, import.meta.url);
      expect(existsSync(file), transition.by).toBe(true);
    }
  });

  it("store nothing before the first pause, and everything after it but the end of the record's life", () => {
    for (const state of STATES) {
      for (const event of EVENTS) {
        const transition = TRANSITIONS[state][event];
        if ("refused" in transition) continue;
        const { next, stored } = transition;
        const hasRecord = state !== "created" && state !== "running" && state !== "expired";
        const moves = next !== state || event === "retry";
        if (!hasRecord) expect(stored, `${state} ${event}`).toBe(event === "pause");
        if (hasRecord && moves) expect(stored, `${state} ${event}`).toBe(event !== "expire");
      }
    }
  });
});
