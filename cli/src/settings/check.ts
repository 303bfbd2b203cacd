/**
 * Checks all settings before anything is installed or started: by the rules of every component at once, and by the rules of
 * ./svc itself. Reports all problems together. Changes nothing.
 */
import {
  ConfigError,
  ineffectiveVariables,
  loadConfig,
  misspeltVariables,
  valueProblems,
} from "@svc/service-kit/config/load";
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";
import { ApiKeysProblem, readApiKeysFile } from "@svc/service-kit/credentials/api-keys-file";
import { verificationKeys } from "@svc/service-kit/credentials/key-sources";
import { capacityOf, languagesOf, memoryOfJails, shortageOf } from "../capacity.ts";
import { componentEnvironment, overriddenSettings } from "../environment.ts";
import { type ChoiceOptions, chooseImage } from "../install/image.ts";
import { type Instance, resolveInstance, SERVICES } from "../instance.ts";
import { guestProblems } from "../microvm/image.ts";
import { keySettingsOf, modeOf } from "../mode.ts";
import { Problem } from "../problem.ts";
import { type Secrets, secretsToCheck } from "../secrets.ts";
import { type Environment, settingOf } from "../settings.ts";
import { sizedAnyway } from "../sizing.ts";
import { thisMachine } from "../system/memory.ts";
import { isRoot } from "../system/root.ts";
import { usesMicrovms } from "../topology.ts";
import { idleSettings } from "./idle.ts";
import type { Settings } from "./sources.ts";

const MIB = 2 ** 20;

/** Throws a Problem that lists everything that is wrong. */
export async function demandGoodSettings(
  instance: Instance,
  caller: Environment,
  options: ChoiceOptions = {},
  further: readonly string[] = [],
): Promise<void> {
  const refused = optionProblems(options);
  const problems = [
    ...refused.map(([name, { message, advice }]) => `--${name}: ${message}. ${advice}`),
    ...further,
    ...(await settingsProblems(instance, caller)),
  ];
  const [only] = refused;
  if (only !== undefined && problems.length === 1) throw only[1];
  if (problems.length > 0) throw invalid(problems);
}

/** The image options whose values are invalid. */
function optionProblems({ languages, packages, mirror }: ChoiceOptions): [name: string, Problem][] {
  return Object.entries({ languages, packages, mirror }).flatMap(([name, value]): [string, Problem][] => {
    const problem = problemWith({ [name]: value }, {});
    return problem === undefined ? [] : [[name, problem]];
  });
}

function problemWith(options: ChoiceOptions, settings: Environment): Problem | undefined {
  try {
    chooseImage(options, settings);
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/**
 * Like resolveInstance. When ports or ids are invalid, the Problem also names every other value that is invalid by itself.
 */
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

export async function settingsProblems(instance: Instance, caller: Environment): Promise<string[]> {
  const capacity = capacityOf(thisMachine(), caller, languagesOf(instance));
  const shortage = shortageOf(capacity);
  const isRefused = shortage !== undefined && (capacity.isSet || capacity.jobs === 0);
  return [
    ...(await refusedSettings(instance, caller)),
    ...(isRefused ? [`${shortage.message}. ${shortage.advice}`] : []),
  ];
}

/** Problems of the settings that do not depend on the memory of this machine. */
export async function refusedSettings(instance: Instance, caller: Environment): Promise<string[]> {
  const { settings } = sizedAnyway(caller, thisMachine(), languagesOf(instance));
  const problems = [
    ...valueProblems(caller),
    ...componentProblems(instance, secretsToCheck(instance.dataDir), settings),
    ...(await credentialProblems(caller)),
    ...imageProblems(caller),
    ...microvmProblems(caller),
  ];
  return [...new Set(problems)];
}

/** Settings that the components would refuse. */
function componentProblems(instance: Instance, secrets: Secrets, settings: Environment): string[] {
  const components = SERVICES.map((name) =>
    name === "runner" && usesMicrovms(settings) ? "launcher" : name,
  );
  return components.flatMap((component) => {
    try {
      loadConfig(component, componentEnvironment(component, instance, secrets, settings));
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  });
}

/** Settings whose problems would otherwise only show when microVMs are made. */
function microvmProblems(caller: Environment): string[] {
  if (!usesMicrovms(caller)) return [];
  const ram = settingOf("LAUNCHER_RAM_MIB", caller);
  const forPrograms = memoryOfJails(ram * MIB);
  const run = settingOf("SANDBOX_RUN_MEMORY_LIMIT", caller);
  return [
    ...guestProblems(caller),
    ...(process.arch === "x64" ? [] : [`KVM_ENABLED needs an x86-64 processor, not ${process.arch}`]),
    ...(run <= forPrograms
      ? []
      : [
          `SANDBOX_RUN_MEMORY_LIMIT is ${run} bytes, and a microVM with LAUNCHER_RAM_MIB=${ram} has ${forPrograms} for programs`,
        ]),
  ];
}

/** Languages and packages that do not exist. */
function imageProblems({ SVC_LANGUAGES, SVC_PACKAGES }: Environment): string[] {
  return [{ SVC_LANGUAGES }, { SVC_PACKAGES }].flatMap((setting) => {
    const problem = problemWith({}, setting);
    return problem === undefined ? [] : [`${problem.message}. ${problem.advice}`];
  });
}

/**
 * Problems that the API would have with the keys that authenticate callers, found by the API's own readers. Files that only
 * root may read are checked only by root, as in ./svc up.
 */
async function credentialProblems(caller: Environment): Promise<string[]> {
  if (!modeOf(caller).isAuthenticated || isUnclear(caller)) return [];
  const settings = keySettingsOf(caller);
  const { problems, isDenied } = await verificationKeys(settings);
  const file = settings.SVC_API_KEYS_FILE;
  const apiKeys =
    file === "" ? undefined : await readApiKeysFile(file).then(() => undefined, asApiKeysProblem);
  const isHidden = (denied: boolean) => denied && !isRoot();
  return [
    ...(isHidden(isDenied) ? [] : problems),
    ...(apiKeys === undefined || isHidden(apiKeys.code === "EACCES")
      ? []
      : [`SVC_API_KEYS_FILE ${apiKeys.message}`]),
  ];
}

/** A LOCAL_MODE that is neither true nor false is refused anyway, and says nothing about keys. */
function isUnclear({ LOCAL_MODE }: Environment): boolean {
  return valueProblems({ LOCAL_MODE }).length > 0;
}

function asApiKeysProblem(error: unknown): ApiKeysProblem {
  if (error instanceof ApiKeysProblem) return error;
  throw error;
}

const isSecret = (name: string) => VARIABLES[name as VariableName]?.secret === true;

/** One line for each setting that the operator set and that has no effect. */
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
    ...ineffectiveVariables({ ...env, ...values }).map(
      (name) =>
        `${name} has no effect: ${usesMicrovms({ ...env, ...values }) || !name.startsWith("LAUNCHER_") ? "this version does not offer what it is about" : "KVM_ENABLED is not true"}`,
    ),
    ...idleSettings(values).map(([name, reason]) => `${name} has no effect: ${reason}`),
    ...overriddenSettings(instance, values).map(
      (name) => `${name} has no effect: ./svc sets where the parts of this copy are`,
    ),
  ];
}
