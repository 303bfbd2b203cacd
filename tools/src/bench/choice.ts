/** What the command line chooses to measure: scenarios by name, groups of them, modes. */
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import { nearestName } from "@svc/service-kit/config/nearest";
import { TOOL_SCENARIOS } from "./programmatic/scenarios.ts";
import { BLOCKS, type Block, SCENARIOS, type Scenario } from "./scenarios.ts";
import { MODES, type Mode } from "./settings.ts";

export interface Choice {
  scenarios: readonly Scenario[];
  blocks: ReadonlySet<Block>;
  modes: readonly Mode[];
}

export const EVERY_SCENARIO: readonly Scenario[] = [...SCENARIOS, ...TOOL_SCENARIOS];

/** Names that stand for several scenarios and blocks. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  programmatic: ["hello-python", "hello-bash", ...TOOL_SCENARIOS.map(({ name }) => name), "paused"],
};

export function names(): string[] {
  return [...EVERY_SCENARIO.map(({ name }) => name), ...Object.keys(BLOCKS), ...Object.keys(GROUPS)];
}

export function choose(given: readonly string[], mode: string | undefined): Choice {
  for (const name of given) known("scenario", name, names());
  if (mode !== undefined) known("mode", mode, MODES);
  const chosen = new Set(given.flatMap((name) => GROUPS[name] ?? [name]));
  const wanted = (name: string) => given.length === 0 || chosen.has(name);
  const choice = {
    scenarios: EVERY_SCENARIO.filter(({ name }) => wanted(name)),
    blocks: new Set((Object.keys(BLOCKS) as Block[]).filter(wanted)),
  };
  const modes = MODES.filter((each) => (mode === undefined || each === mode) && hasPartIn(choice, each));
  if (modes.length > 0) return { ...choice, modes };
  throw new Problem(
    `nothing of ${given.join(", ")} is measured in mode ${mode}; leave out --mode`,
    undefined,
    USAGE_EXIT_CODE,
  );
}

function hasPartIn(choice: Omit<Choice, "modes">, mode: Mode): boolean {
  const { scenarios, blocks } = inMode(choice, mode);
  return scenarios.length + blocks.size > 0;
}

function known(what: string, name: string, all: readonly string[]): void {
  if (all.includes(name)) return;
  throw new Problem(
    `unknown ${what} ${name}; did you mean ${nearestName(name, all)}?`,
    undefined,
    USAGE_EXIT_CODE,
  );
}

/** The part of a choice that one mode measures: what starts no program is not measured cold. */
export function inMode({ scenarios, blocks }: Omit<Choice, "modes">, mode: Mode): Omit<Choice, "modes"> {
  return {
    scenarios: scenarios.flatMap((scenario) => {
      const share = mode === "warm" ? scenario.share : scenario.coldShare;
      return share === undefined ? [] : [{ ...scenario, share }];
    }),
    blocks: new Set([...blocks].filter((block) => mode === "warm" || BLOCKS[block].cold)),
  };
}
