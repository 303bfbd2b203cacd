import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import { CALLS, type InternalTokenName, LISTENS } from "../../src/config/calls.ts";
import {
  type Component,
  ConfigError,
  HOLDERS,
  loadConfig,
  PAIR_TOKENS,
  tokensFrom,
  tokenTo,
} from "../../src/index.ts";

const NAMES = Object.keys(PAIR_TOKENS) as InternalTokenName[];
const TOKENS = Object.fromEntries(NAMES.map((name) => [name, newSecret()])) as Record<
  InternalTokenName,
  string
>;
const SHARED = newSecret();
/** What components need besides. */
const REST = {
  SVC_CONTINUATION_SECRET: newSecret(),
  SVC_EGRESS_GRANT_SECRET: newSecret(),
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: "private",
};
const WITH_TOKENS = ["api", "worker", "egress-gateway", "file-server", "tool-call-server"] as const;

const configOf = (component: Component, env: Record<string, string>) =>
  loadConfig(component, { ...REST, ...env });
const problemsOf = (component: Component, env: Record<string, string>) =>
  thrown(ConfigError, () => configOf(component, env))?.problems ?? [];
const pairsOf = (component: Component) => NAMES.filter((name) => PAIR_TOKENS[name].includes(component));

describe("the table of calls", () => {
  it("has a token for each pair of components, but for those that show a manifest or a grant", () => {
    const without = CALLS.filter(({ from, to, token }) => from in LISTENS && to in LISTENS && !token);
    expect(without.map(({ from, to }) => [from, to])).toEqual([
      ["worker", "runner"],
      ["runner", "egress-gateway"],
    ]);
  });

  it.each(NAMES)("%s is named after its pair, whose two components alone hold it", (name) => {
    const [from, to] = PAIR_TOKENS[name];
    const spelt = (component: string) => component.toUpperCase().replaceAll("-", "_");
    expect(name).toBe(`SVC_INTERNAL_TOKEN_${spelt(from)}_TO_${spelt(to)}`);
    expect(HOLDERS[name]).toEqual([from, to]);
  });
});

describe("a token for each pair", () => {
  it.each(WITH_TOKENS)("is all that the %s needs, and all that it takes", (component) => {
    const config = configOf(component, TOKENS);
    const held = NAMES.filter((name) => config[name] !== "");
    expect(held).toEqual(pairsOf(component));
  });

  it.each(NAMES)("%s is shown by one and taken by the other", (name) => {
    const [from, to] = PAIR_TOKENS[name];
    expect(tokenTo(configOf(from, TOKENS), from, to)).toBe(TOKENS[name]);
    const config = configOf(to, TOKENS);
    expect(tokensFrom(config, to)).toContain(TOKENS[name]);
    expect(tokensFrom(config, to, [from])).toEqual([TOKENS[name]]);
  });

  it("is not taken from other callers", () => {
    const config = configOf("egress-gateway", TOKENS);
    expect(tokensFrom(config, "egress-gateway", ["worker"])).not.toContain(
      TOKENS.SVC_INTERNAL_TOKEN_API_TO_EGRESS_GATEWAY,
    );
    expect(tokensFrom(config, "egress-gateway", [])).toEqual([]);
  });

  it("changes by way of both: the first is shown, each is taken", () => {
    const name = "SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER";
    const [next, before] = [newSecret(), TOKENS[name]];
    const both = { ...TOKENS, [name]: `${next}, ${before}` };
    expect(tokenTo(configOf("api", both), "api", "file-server")).toBe(next);
    expect(tokensFrom(configOf("file-server", both), "file-server", ["api"])).toEqual([next, before]);
    expect(problemsOf("api", { ...both, [name]: `${both[name]},${newSecret()}` })).toEqual([
      `${name} must be one token, or two: the new one, and the one before`,
    ]);
    expect(problemsOf("api", { ...both, [name]: `${next},` })).toEqual([
      `${name} must have at least 32 bytes`,
    ]);
    expect(problemsOf("api", { ...both, [name]: `${next},${"x".repeat(32)}` })).toEqual([
      expect.stringContaining(`${name} can be guessed`),
    ]);
  });
});

describe("the token of all pairs", () => {
  it.each(WITH_TOKENS)("is shown and taken by the %s where a pair has none", (component) => {
    const config = configOf(component, { SVC_INTERNAL_SERVICE_TOKEN: SHARED });
    for (const [from, to] of Object.values(PAIR_TOKENS)) {
      if (from === component) expect(tokenTo(config, from, to)).toBe(SHARED);
      if (to === component) expect(tokensFrom(config, to)).toEqual([SHARED]);
    }
  });

  it("is taken beside the pair's own, which is shown", () => {
    const both = { ...TOKENS, SVC_INTERNAL_SERVICE_TOKEN: SHARED };
    expect(tokenTo(configOf("worker", both), "worker", "egress-gateway")).toBe(
      TOKENS.SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY,
    );
    expect(tokensFrom(configOf("egress-gateway", both), "egress-gateway", ["worker"])).toEqual([
      TOKENS.SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY,
      SHARED,
    ]);
  });
});

describe("a component does not start", () => {
  it.each(WITH_TOKENS)("the %s without any token", (component) => {
    expect(problemsOf(component, {})).toEqual([`SVC_INTERNAL_SERVICE_TOKEN is required by the ${component}`]);
  });

  it.each(NAMES)("without %s where others have their own", (name) => {
    for (const component of PAIR_TOKENS[name].filter((one) => pairsOf(one).length > 1)) {
      expect(problemsOf(component, { ...TOKENS, [name]: "" })).toEqual([
        `${name} is required by the ${component}, or SVC_INTERNAL_SERVICE_TOKEN`,
      ]);
    }
  });

  it("with one token for two pairs", () => {
    const [first, second] = pairsOf("file-server") as [InternalTokenName, InternalTokenName];
    expect(problemsOf("file-server", { ...TOKENS, [second]: TOKENS[first] })).toEqual([
      `${first} and ${second} must differ`,
    ]);
    expect(problemsOf("file-server", { ...TOKENS, SVC_INTERNAL_SERVICE_TOKEN: TOKENS[second] })).toEqual([
      `${second} and SVC_INTERNAL_SERVICE_TOKEN must differ`,
    ]);
  });

  it("the API without a key of continuation tokens, which the token of all pairs would be", () => {
    expect(problemsOf("api", { ...TOKENS, SVC_CONTINUATION_SECRET: "" })).toEqual([
      "SVC_CONTINUATION_SECRET is required by the api without SVC_INTERNAL_SERVICE_TOKEN",
    ]);
  });
});
