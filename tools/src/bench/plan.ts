/** Decides which samples are taken of the chosen scenarios, and which cases take turns. Pure but for the samples themselves. */
import { BARE, type BareCommand } from "./bare.ts";
import { isToolScenario } from "./programmatic/scenarios.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import type { Mode } from "./settings.ts";
import type { Case, Group } from "./turns.ts";

/** What a case runs. */
export type Work = { bare: BareCommand } | { scenario: Scenario };

/** A case without its sample. */
export interface Planned extends Omit<Case, "sample"> {
  work: Work;
  /** Runs before anything is measured. */
  firstRuns: number;
  /** Cases that are compared with each other have the same group. */
  group: string;
  alternates: boolean;
  /** Its part in the measurement of each kind in between all others; absent when it has none. */
  mixed?: { group: string; n: number };
}

interface WarmUp {
  first: number;
  block: number;
}

/**
 * Unmeasured runs of a scenario whose share of the samples is 1. V8 compiles the components while they work, and in use
 * they work for days. Before a block other groups have run, whose compiled code also fits, but less well. Where an
 * interpreter starts for every run, these starts take most of the time.
 */
const WARM_UP: Record<Mode, WarmUp> = { warm: { first: 1000, block: 300 }, cold: { first: 100, block: 10 } };
const BARE_WARM_UP: WarmUp = { first: 5, block: 2 };
/** Samples in between all others, as a share of those that are taken by themselves. Only a median is shown of bare commands. */
const MIXED = { request: 0.5, bare: 0.25 };

export const HELLO_PYTHON = "hello-python";
/** Requests like hello-python's, in turn with programs with tools. */
export const HELLO_BESIDE_TOOLS = "hello-python beside tools";
/** Measured in every run, because they describe the machine. */
const OF_MACHINE: ReadonlySet<string> = new Set(["true", "python", "host-python"]);
const TOOLS = "programs with tools";

/** Unmeasured runs of a scenario right before it is measured by itself. */
export const warmUpRuns = (scenario: Scenario, mode: Mode): number =>
  Math.ceil(WARM_UP[mode].block * scenario.share);

/** In the order in which they warm up. */
export function planOf(scenarios: readonly Scenario[], n: number, mode: Mode): Planned[] {
  return [
    ...BARE.flatMap((bare) => bareOf(bare, scenarios, n, mode)),
    ...scenarios.map((scenario) => requestOf(scenario, n, mode)),
    ...helloBesideTools(scenarios, n, mode),
  ];
}

/** As many samples as the scenario has with which it is compared. */
function bareOf(command: BareCommand, scenarios: readonly Scenario[], n: number, mode: Mode): Planned[] {
  const { name } = command;
  const compared = scenarios.filter(({ bare }) => bare === name);
  const share = OF_MACHINE.has(name) ? 1 : Math.max(0, ...compared.map((scenario) => scenario.share));
  if (share === 0) return [];
  const alternates = compared.some((scenario) => scenario.alternates);
  const warmUp = alternates ? WARM_UP[mode] : BARE_WARM_UP;
  const group = OF_MACHINE.has(name) ? "python" : name;
  return [
    {
      name: `bare ${name}`,
      work: { bare: command },
      n: Math.ceil(n * share),
      firstRuns: Math.ceil(BARE_WARM_UP.first * share),
      warmUp: Math.ceil(warmUp.block * share),
      group,
      alternates,
      mixed: { group, n: Math.ceil(n * share * (alternates ? MIXED.request : MIXED.bare)) },
    },
  ];
}

function requestOf(scenario: Scenario, n: number, mode: Mode): Planned {
  const { name, share, bare = `alone: ${name}`, alternates = false } = scenario;
  return {
    name,
    work: { scenario },
    n: Math.ceil(n * share),
    firstRuns: Math.ceil(WARM_UP[mode].first * share),
    warmUp: warmUpRuns(scenario, mode),
    group: isToolScenario(scenario) ? TOOLS : bare,
    alternates,
    mixed: { group: bare, n: Math.ceil(n * share * MIXED.request) },
  };
}

function helloBesideTools(scenarios: readonly Scenario[], n: number, mode: Mode): Planned[] {
  if (!scenarios.some(isToolScenario)) return [];
  return SCENARIOS.filter(({ name }) => name === HELLO_PYTHON).map((hello): Planned => {
    const { mixed: _, ...planned } = requestOf(hello, n, mode);
    const isWarmedUp = scenarios.some(({ name }) => name === HELLO_PYTHON);
    return {
      ...planned,
      name: HELLO_BESIDE_TOOLS,
      group: TOOLS,
      firstRuns: isWarmedUp ? 0 : planned.firstRuns,
    };
  });
}

type Runnable = Planned & Case;

/** Groups of cases that are compared with each other. Programs with tools have a hello-python of their own. */
export function groupsByThemselves(cases: readonly Runnable[]): Group[] {
  return groupsOf(cases);
}

/** The groups for each kind in between all others; none when there is only one. */
export function groupsInTurn(cases: readonly Runnable[]): Group[] {
  const taking = cases.flatMap((each) =>
    each.mixed === undefined ? [] : [{ ...each, group: each.mixed.group, n: each.mixed.n }],
  );
  const groups = groupsOf(taking);
  return groups.length > 1 ? groups : [];
}

function groupsOf(cases: readonly Runnable[]): Group[] {
  return [...Map.groupBy(cases, ({ group }) => group).values()].map((compared) => ({
    cases: compared,
    alternates: compared.some(({ alternates }) => alternates),
  }));
}
