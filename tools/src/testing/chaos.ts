/** Chooses the seeds of the chaos suite and the duration of each: as requested, else fixed seeds in CI, else a random one. */
import { randomInt } from "node:crypto";
import { wholeNumber } from "@svc/cli/options";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";

/** Together they have faults of every kind. */
const FIXED = "1-5";
const SECONDS = { ci: 10, otherwise: 30 };
const LARGEST = 1_000_000_000;
const LONGEST_SECONDS = 3600;

export interface ChaosChoice {
  seed: string | undefined;
  seconds: string | undefined;
  /** Whether it is one of many suites: then the same seeds run each time. */
  isFixed: boolean;
  isCi: boolean;
}

/** The variables that the suite reads. */
export interface ChaosSettings {
  CHAOS_SEEDS: string;
  CHAOS_SECONDS: string;
}

/** Throws a Problem for an invalid seed or number of seconds. */
export function chaosSettings({ seed, seconds, isFixed, isCi }: ChaosChoice): ChaosSettings {
  const chosen = seconds === undefined ? undefined : wholeNumber("seconds", seconds, 1, LONGEST_SECONDS);
  if (seed !== undefined) seedsOf(seed);
  return {
    CHAOS_SEEDS: seed ?? (isFixed ? FIXED : String(randomInt(LARGEST))),
    CHAOS_SECONDS: String(chosen ?? (isCi ? SECONDS.ci : SECONDS.otherwise)),
  };
}

/** Seeds as they are named: `7`, `1-5`. */
export function seedsOf(text: string): number[] {
  const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === undefined || to < from)
    throw new Problem(
      `no seeds: ${text}`,
      "A seed is a whole number below 1000000000; several are a range: --seed 1-20",
      USAGE_EXIT_CODE,
    );
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
