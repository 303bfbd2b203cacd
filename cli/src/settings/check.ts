/**
 * Judges all settings before anything is installed or started: by the rules of every component at once, and by
 * ./svc itself. All problems are told together. Changes nothing.
 */
import { statSync } from "node:fs";
import { ConfigError, loadConfig, misspeltVariables, valueProblems } from "@svc/service-kit/config/load";
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";
import { capacityOf, languagesOf, shortageOf } from "../capacity.ts";
import { componentEnvironment, overriddenSettings } from "../environment.ts";
import { type Instance, resolveInstance, SERVICES } from "../instance.ts";
import { countKeys, modeOf } from "../mode.ts";
import { Problem } from "../problem.ts";
import { type Secrets, secretsToCheck } from "../secrets.ts";
import type { Environment } from "../settings.ts";
import { sizedAnyway } from "../sizing.ts";
import { thisMachine } from "../system/memory.ts";
import type { Settings } from "./sources.ts";

/** Throws a Problem that lists everything that is wrong. */
export function demandGoodSettings(instance: Instance, caller: Environment): void {
  const problems = settingsProblems(instance, caller);
  if (problems.length > 0) throw invalid(problems);
}

/** As resolveInstance. Where ports or ids are wrong, every other value that is wrong by itself is named with them. */
export function resolveChecked(values: Parameters<typeof resolveInstance>[0], caller: Environment): Instance {
  try {
    return resolveInstance(values, caller);
  } catch (error) {
    const problems = valueProblems(caller);
    if (!(error instanceof Problem) || problems.length === 0) throw error;
    const isNamed = problems.some((problem) => problem.split(" ", 1)[0] === error.message.split(" ", 1)[0]);
    throw invalid(isNamed ? problems : [error.message, ...problems]);
  }
}

function invalid(problems: readonly string[]): Problem {
  return new Problem(
    `the settings are not valid:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`,
    "docs/configuration.md says what each may be.",
  );
}

export function settingsProblems(instance: Instance, caller: Environment): string[] {
  const capacity = capacityOf(thisMachine(), caller, languagesOf(instance));
  const shortage = shortageOf(capacity);
  const isRefused = shortage !== undefined && (capacity.isSet || capacity.jobs === 0);
  return [
    ...refusedSettings(instance, caller),
    ...(isRefused ? [`${shortage.message}. ${shortage.advice}`] : []),
  ];
}

/** Whatever the memory of this machine is. */
export function refusedSettings(instance: Instance, caller: Environment): string[] {
  const { settings } = sizedAnyway(caller, thisMachine(), languagesOf(instance));
  const problems = [
    ...valueProblems(caller),
    ...componentProblems(instance, secretsToCheck(instance.dataDir), settings),
    ...keyProblems(caller),
  ];
  return [...new Set(problems)];
}

/** What the components would refuse. */
function componentProblems(instance: Instance, secrets: Secrets, settings: Environment): string[] {
  return SERVICES.flatMap((service) => {
    try {
      loadConfig(service, componentEnvironment(service, instance, secrets, settings));
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  });
}

/** Authentication without keys would refuse everybody. */
function keyProblems(caller: Environment): string[] {
  const mode = modeOf(caller);
  const { directory, apiKeysFile } = mode.keys;
  if (!mode.isAuthenticated) return [];
  if (directory !== "" && !statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    return [`SVC_JWT_PUBLIC_KEYS_DIR=${directory} is no folder`];
  }
  if (apiKeysFile !== "" || countKeys(mode).jwt > 0) return [];
  return [
    directory === ""
      ? "authentication is on and there are no keys: set SVC_JWT_PUBLIC_KEYS_DIR, SVC_JWT_PUBLIC_KEY with SVC_JWT_KID, SVC_JWT_JWKS_JSON or SVC_API_KEYS_FILE (docs/authentication.md)"
      : `SVC_JWT_PUBLIC_KEYS_DIR=${directory} holds no keys`,
  ];
}

const isSecret = (name: string) => VARIABLES[name as VariableName]?.secret === true;

/** What an operator set and what has no effect, one line for each. */
export function settingsWarnings(
  { values, file, fromFile, foreign, isOpen = false, unreadable }: Settings,
  env: Environment,
  instance: Instance,
): string[] {
  const inFile = new Set(foreign.map(({ name }) => name));
  const shown = (name: string) => {
    const line = foreign.find((each) => each.name === name)?.line;
    return line === undefined ? name : `${file}:${line}: ${name}`;
  };
  const given = Object.fromEntries([...Object.entries(env), ...[...inFile].map((name) => [name, "set"])]);
  const misspelt = misspeltVariables(given);
  const meant = new Set(misspelt.map(({ name }) => name));
  return [
    ...(unreadable === undefined
      ? []
      : [`${unreadable} can be read by its owner alone: its settings are not known here`]),
    ...(isOpen && [...fromFile].some(isSecret)
      ? [`${file} holds secrets and can be read by others: chmod 600 ${file}`]
      : []),
    ...misspelt.map(
      ({ name, meant }) => `${shown(name)} is not known and has no effect; did you mean ${meant}?`,
    ),
    ...foreign
      .filter(({ name }) => !meant.has(name))
      .map(({ name }) => `${shown(name)} is not known and has no effect`),
    ...overriddenSettings(instance, values).map(
      (name) => `${name} has no effect: ./svc sets where the parts of this copy are`,
    ),
  ];
}
