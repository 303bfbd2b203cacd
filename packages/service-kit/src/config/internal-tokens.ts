/**
 * Tokens of the internal routes. Each pair of caller and callee can have its own token (`token` in config/calls.ts). Then a compromised
 * component can make only its own calls and cannot impersonate another component. SVC_INTERNAL_SERVICE_TOKEN is the shared token:
 * callers send it when their pair has no token, and callees accept it wherever it is set. Pure.
 */
import { CALLS, type InternalTokenName } from "./calls.ts";
import { secretProblem } from "./secret-quality.ts";
import type { Component } from "./types.ts";
import type { Config } from "./variables.ts";

interface Pair {
  from: Component;
  to: Component;
  token: InternalTokenName;
}

const PAIRS = CALLS.filter((call): call is Pair => call.token !== undefined);
/** During a rotation: the new token and the previous one. */
const MOST_TOKENS = 2;

/** Every pair token's variable, with the two components that hold it. */
export const PAIR_TOKENS: Readonly<Record<InternalTokenName, readonly [Component, Component]>> =
  Object.fromEntries(PAIRS.map(({ from, to, token }) => [token, [from, to]])) as never;

/** The token that `from` sends to `to`. */
export function tokenTo(config: Config, from: Component, to: Component): string {
  const pair = PAIRS.find((candidate) => candidate.from === from && candidate.to === to);
  const [current] = pair === undefined ? [] : tokensIn(config[pair.token]);
  return current ?? config.SVC_INTERNAL_SERVICE_TOKEN;
}

/** The tokens that `to` accepts from all its callers, or only from `callers`. The holder of the shared token counts as any caller. */
export function tokensFrom(config: Config, to: Component, callers?: readonly Component[]): string[] {
  const pairs = PAIRS.filter((pair) => pair.to === to && (callers?.includes(pair.from) ?? true));
  const shared = config.SVC_INTERNAL_SERVICE_TOKEN;
  return [...pairs.flatMap(({ token }) => tokensIn(config[token])), ...(shared === "" ? [] : [shared])];
}

/** Missing tokens, and equal tokens that would make two pairs indistinguishable. */
export function tokenProblems(component: Component, config: Config): string[] {
  const names = PAIRS.filter(({ from, to }) => [from, to].includes(component)).map(({ token }) => token);
  if (names.length === 0) return [];
  const shared = config.SVC_INTERNAL_SERVICE_TOKEN;
  const unset = names.filter((name) => config[name] === "");
  if (shared === "" && unset.length === names.length)
    return [`SVC_INTERNAL_SERVICE_TOKEN is required by the ${component}`];
  const problems = same([...names, "SVC_INTERNAL_SERVICE_TOKEN"], config);
  if (shared !== "") return problems;
  problems.push(
    ...unset.map((name) => `${name} is required by the ${component}, or SVC_INTERNAL_SERVICE_TOKEN`),
  );
  if (component === "api" && config.SVC_CONTINUATION_SECRET === "")
    problems.push("SVC_CONTINUATION_SECRET is required by the api without SVC_INTERNAL_SERVICE_TOKEN");
  return problems;
}

/** What is wrong with the text of a pair's variable, or undefined. */
export function pairTokenProblem(text: string): string | undefined {
  const tokens = tokensIn(text);
  if (tokens.length > MOST_TOKENS) return `must be one token, or two: the new one, and the one before`;
  return tokens.map(secretProblem).find((problem) => problem !== undefined);
}

/** The caller sends the first token; the callee accepts each of them. */
function tokensIn(text: string): string[] {
  return text === "" ? [] : text.split(",").map((token) => token.trim());
}

/** Problems for variables with equal tokens. Ignores previous tokens: a previous one may have been the shared token. */
function same(
  names: readonly (InternalTokenName | "SVC_INTERNAL_SERVICE_TOKEN")[],
  config: Config,
): string[] {
  const seen = new Map<string, string>();
  const problems: string[] = [];
  for (const name of names) {
    const token = name === "SVC_INTERNAL_SERVICE_TOKEN" ? config[name] : tokensIn(config[name])[0];
    if (!token) continue;
    const other = seen.get(token);
    if (other !== undefined) problems.push(`${other} and ${name} must differ`);
    seen.set(token, name);
  }
  return problems;
}
