/** Random times from a seed. */
import { randomFrom } from "../../bench/statistics.ts";

/** A factor with mean 1: different for each request, and the same for the same seed. */
export type Distribution = (random: () => number) => number;

export const constant: Distribution = () => 1;

export const exponential: Distribution = (random) => -Math.log(1 - random());

/** Two exponential phases. `variation`: the square of the coefficient of variation, above 1. */
export function hyperexponential(variation: number): Distribution {
  const share = (1 + Math.sqrt((variation - 1) / (variation + 1))) / 2;
  return (random) => {
    const mean = random() < share ? 1 / (2 * share) : 1 / (2 * (1 - share));
    return mean * exponential(random);
  };
}

/** Independent streams of one seed, so that a change to one use of randomness does not change the others. */
export const streamOf = (seed: number, number: number) =>
  randomFrom(Math.imul(seed, 0x9e3779b1) + number * 7919);
