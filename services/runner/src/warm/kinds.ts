/**
 * The kinds of jail that can wait warm, and which of them a program takes: with a copy of a zygote, which is made in a moment, or
 * with a pre-started interpreter, which takes as long as a cold start. Pure.
 */

import type { JailRun } from "@svc/jail-client";
import type { Config } from "@svc/service-kit";
import type { LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import { jailLimits, limitsFor } from "../admission/limits.ts";
import type { Program } from "../execution/program.ts";
import type { Prestarted, Runtimes } from "../execution/runtimes.ts";

export interface Kind {
  name: string;
  /** The command of programs that take this kind. For a zygote, only its first word must match. */
  argv: readonly string[];
  /** The program must contain one of these words; empty: there is no such condition. */
  words: readonly string[];
  /** Commands of programs with tools or with a session. A program with exactly one of them takes this kind without its words. */
  preludes?: readonly (readonly string[])[];
  /** Absent: the kind has copies of a zygote. */
  prestarted?: Pick<Prestarted, "least" | "refillMs">;
  /** Fills a jail; false when there is no such zygote now. */
  fill: (jail: JailRun) => Promise<boolean>;
}

/** Only this much of a program is searched: imports are at its start. */
const LOOKED_AT = 256 * 1024;

export function kindsOf(runtimes: Runtimes, config: Config, overrides: LimitOverrides): Kind[] {
  const zygotes = runtimes
    .zygotes()
    .map((zygote) => ({ ...zygote, fill: (jail: JailRun) => jail.warm(zygote.name) }));
  const prestarted = runtimes.prestarted().map(({ language, prestarted }) => {
    const limits = jailLimits(limitsFor(config, overrides, { language }));
    const variables = Object.entries(prestarted.env).map(([name, value]) => `${name}=${value}`);
    const fill = (jail: JailRun) => jail.prestart(prestarted.argv, variables, limits);
    return { name: language, argv: prestarted.argv, words: [], prestarted, fill };
  });
  return [...zygotes, ...prestarted];
}

/** The last kind that fits. A program can see the command of a pre-started interpreter, so the command must be the program's own. */
export function kindFor<K extends Pick<Kind, "argv" | "words" | "preludes" | "prestarted">>(
  { argv, contents }: Pick<Program, "argv" | "contents">,
  kinds: readonly K[],
): K | undefined {
  const source = contents[0]?.bytes.subarray(0, LOOKED_AT) ?? Buffer.alloc(0);
  return kinds.findLast(
    (kind) =>
      kind.argv[0] === argv[0] &&
      (kind.prestarted === undefined || isSame(kind.argv, argv)) &&
      (kind.words.length === 0 ||
        kind.words.some((word) => source.includes(word)) ||
        kind.preludes?.some((prelude) => isSame(prelude, argv))),
  );
}

const isSame = (some: readonly string[], others: readonly string[]) =>
  some.length === others.length && some.every((one, at) => one === others[at]);
