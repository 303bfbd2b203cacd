/**
 * The first step of a start with containers. It makes the missing secrets, chooses sizes that fit the machine, and writes a
 * file for each component with only the settings that the component may hold. Running it again changes only what the
 * settings change.
 *
 * <secrets>/<component>/environment: NAME=value pairs, each ended by NUL. <SVC_DATA_DIR>/secrets.env: the same file as for
 * `./svc up`.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { HOLDERS, holds } from "@svc/service-kit/config/holders";
import type { VariableName } from "@svc/service-kit/config/variables";
import { languagesOf, type Machine } from "../capacity.ts";
import { pick } from "../environment.ts";
import { SERVICES, type Service } from "../instance.ts";
import { Problem } from "../problem.ts";
import { givenSecrets, loadSecrets } from "../secrets.ts";
import { type Environment, settingOf } from "../settings.ts";
import { sized } from "../sizing.ts";
import { thisMachine } from "../system/memory.ts";
import { replaceFile } from "../system/replace-file.ts";
import { containerInstance } from "./place.ts";

const SECRETS = "/secrets";
export const CONTAINERS = [...SERVICES, "jaild"] as const;
const SIZES = ["SANDBOX_MAX_CONCURRENT_JOBS", "PYTHON_CONCURRENCY", "OTHER_CONCURRENCY"] as const;
/** These concern only the container of this step. */
const OWN = ["SVC_DATA_DIR", "SVC_SETTINGS_FILE"];
/** The runner has a user of its own, which reads the file through its group. Only this step is also in that group. jaild is root. */
const BY_GROUP = "runner";

export function init(env: Environment, secrets = SECRETS): void {
  const all = settingsOf(env, thisMachine());
  for (const component of CONTAINERS) {
    const text = [...environmentOf(component, all)].map((pair) => `${pair.join("=")}\0`).join("");
    const mode = component === BY_GROUP ? 0o640 : 0o600;
    replaceFile(join(secrets, component, "environment"), text, { mode });
  }
  const keys = settingOf("SVC_API_KEYS_FILE", env);
  if (keys !== "" && !existsSync(keys)) replaceFile(keys, "", { mode: 0o600 });
}

/** Every setting with its value. Sizes override generated secrets, and what the operator set overrides both. */
function settingsOf(env: Environment, machine: Machine): Environment {
  const instance = containerInstance(env);
  const { settings, notice } = sized(env, machine, languagesOf(instance));
  if (notice !== undefined) console.error(notice);
  const sizes = Object.fromEntries(SIZES.map((name) => [name, settings[name]]));
  return { ...givenSecrets(loadSecrets(instance.dataDir), false, env), ...sizes, ...pick(env) };
}

/** Returns the settings for a component. Throws a Problem for a name that no shell accepts. Pure. */
export function environmentOf(component: Service | "jaild", all: Environment): Map<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of Object.entries(all)) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(name)) throw new Problem(`${JSON.stringify(name)} is no name of a setting`);
    if (value === undefined || OWN.includes(name) || !mayHold(component, name as VariableName)) continue;
    given.set(name, value);
  }
  return given;
}

/** jaild only takes sizes, and gets nothing confidential. */
function mayHold(component: Service | "jaild", name: VariableName): boolean {
  return component === "jaild" ? HOLDERS[name] === undefined : holds(component, name);
}
