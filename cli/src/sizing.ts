/**
 * What `./svc up` chooses when the operator sets nothing: the mode, how the components share processes, and sizes that fit
 * this machine. Components that are started by hand keep the documented defaults. Pure.
 */
import { VARIABLES } from "@svc/service-kit/config/variables";
import { LOCAL_MODE_FACTOR } from "@svc/service-kit/config/variables/api";
import { capacityOf, fitted, type Language, type Machine } from "./capacity.ts";
import { modeOf } from "./mode.ts";
import type { Environment } from "./settings.ts";

const WINDOWS = [
  "MAX_REQUESTS",
  "PTC_RESUME_MAX_REQUESTS",
  "UPLOAD_MAX_REQUESTS",
  "DOWNLOAD_MAX_REQUESTS",
  "FETCH_MAX_REQUESTS",
] as const;

export interface Sized {
  /** The caller's settings, completed with `chosen`. */
  settings: Environment;
  /** The values that ./svc chose. */
  chosen: Readonly<Record<string, string>>;
  /** Why there are fewer slots than the processors would allow. */
  notice?: string;
}

/** Throws a Problem when the number of slots that the operator set, or even a single slot, does not fit into the memory. */
export function sized(caller: Environment, machine: Machine, languages: readonly Language[]): Sized {
  const { jobs, notice } = fitted(capacityOf(machine, caller, languages));
  return { ...chosenFor(caller, jobs), ...(notice === undefined ? {} : { notice }) };
}

/** For commands that start nothing: never throws, and keeps the number that was asked for even when it does not fit. */
export function sizedAnyway(caller: Environment, machine: Machine, languages: readonly Language[]): Sized {
  const { jobs, wanted, isSet } = capacityOf(machine, caller, languages);
  return chosenFor(caller, isSet || jobs === 0 ? wanted : jobs);
}

function chosenFor(caller: Environment, jobs: number): Pick<Sized, "settings" | "chosen"> {
  const { isLocal, isAuthenticated } = modeOf(caller);
  const windows = WINDOWS.map((name) => [name, String(VARIABLES[name].fallback * LOCAL_MODE_FACTOR)]);
  const all: Record<string, string> = {
    LOCAL_MODE: String(isLocal),
    SVC_TOPOLOGY: isAuthenticated ? "separate" : "combined",
    SANDBOX_MAX_CONCURRENT_JOBS: String(jobs),
    PYTHON_CONCURRENCY: String(jobs),
    OTHER_CONCURRENCY: String(jobs),
    ...(isLocal ? Object.fromEntries(windows) : {}),
  };
  const chosen = Object.fromEntries(Object.entries(all).filter(([name]) => !caller[name]));
  return { settings: { ...caller, ...chosen }, chosen };
}
