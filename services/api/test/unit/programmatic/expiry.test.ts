import { AnswerRenewal, roundAnswerKey, storedSecondsFor } from "@svc/api/programmatic/expiry";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const KEPT_SECONDS = 600;
const LIFE_MS = storedSecondsFor(KEPT_SECONDS) * 1000;

/** Makes rounds with the given pauses before them; the time at which each answer lapses, and how many renewals there were. */
function makeRounds(pausesMs: readonly number[], answers: AnswerRenewal, lapses: Map<string, number>) {
  let nowMs = 0;
  for (const [at, pauseMs] of pausesMs.entries()) {
    nowMs += pauseMs;
    const round = at + 1;
    lapses.set(roundAnswerKey("e", round), nowMs + LIFE_MS);
    clock.nowMs = nowMs;
    answers.renew({ executionId: "e", round }, nowMs);
  }
  return nowMs;
}
const clock = { nowMs: 0 };

function tested() {
  const lapses = new Map<string, number>();
  const counted = { keys: 0 };
  const keep = async (keys: readonly string[]) => {
    counted.keys += keys.length;
    for (const key of keys) lapses.set(key, clock.nowMs + LIFE_MS);
  };
  return { lapses, counted, answers: new AnswerRenewal({ keep }, KEPT_SECONDS) };
}

describe("answers of earlier rounds", () => {
  it("are kept for their time from the last round on, whatever the pauses were", () => {
    const pauses = fc.array(fc.integer({ min: 0, max: KEPT_SECONDS * 1000 }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(pauses, (pausesMs) => {
        const { lapses, answers } = tested();
        const endMs = makeRounds(pausesMs, answers, lapses);
        return [...lapses.values()].every((lapseMs) => lapseMs >= endMs + KEPT_SECONDS * 1000);
      }),
    );
  });

  it("cost nothing more while rounds follow quickly", () => {
    const { lapses, counted, answers } = tested();
    makeRounds(Array(200).fill(100), answers, lapses);
    expect(counted.keys).toBe(1);
  });
});
