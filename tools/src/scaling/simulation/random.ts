/** Random times of a seed. */
import { randomFrom } from "../../bench/statistics.ts";

/** Different for each request, the same for the same seed. Of mean 1. */
export type Distribution = (random: () => number) => number;

export const constant: Distribution = () => 1;

export const exponential: Distribution = (random) => -Math.log(1 - random());

/** Two exponential phases, chosen so that the square of the coefficient of variation is this, above 1. */
export function hyperexponential(variation: number): Distribution {
  const share = (1 + Math.sqrt((variation - 1) / (variation + 1))) / 2;
  return (random) => {
    const mean = random() < share ? 1 / (2 * share) : 1 / (2 * (1 - share));
    return mean * exponential(random);
  };
}

/** Independent streams of one seed: a change of one use of chance leaves the others as they are. */
export const streamOf = (seed: number, number: number) =>
  randomFrom(Math.imul(seed, 0x9e3779b1) + number * 7919);
