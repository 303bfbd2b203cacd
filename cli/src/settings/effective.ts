/** Every variable with its effective value for this copy, its source and its default. Secrets are shown as `[set]`. Pure. */
import { effectiveConfig } from "@svc/service-kit/config/load";
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";
import type { Environment } from "../settings.ts";

export type Source = "default" | "file" | "environment" | "flag" | "./svc";

export interface Effective {
  name: VariableName;
  value: string;
  source: Source;
  default: string;
}

export interface Layers {
  /** The variables that the components of the copy get. */
  given: Environment;
  /** The variables that the operator set, in any way. */
  set: Environment;
  fromFile: ReadonlySet<string>;
  /** Names of variables whose value comes from a command-line option. */
  fromFlags: ReadonlySet<string>;
}

export function effectiveSettings(layers: Layers): Effective[] {
  const config = effectiveConfig(layers.given);
  return (Object.keys(VARIABLES) as VariableName[]).map((name) => {
    const { secret, note = "", fallback } = VARIABLES[name];
    const value = textOf(config[name]);
    return {
      name,
      value: secret && value !== "" ? "[set]" : value,
      source: isUnchanged(name, layers) ? "default" : sourceOf(name, layers),
      default: textOf(fallback) || note.replaceAll("`", ""),
    };
  });
}

/** ./svc gives the components some values that are the defaults. */
function isUnchanged(name: VariableName, { given, set, fromFlags }: Layers): boolean {
  return !set[name] && !fromFlags.has(name) && given[name] === textOf(VARIABLES[name].fallback);
}

function sourceOf(name: string, { given, set, fromFile, fromFlags }: Layers): Source {
  if (fromFlags.has(name)) return "flag";
  if (!given[name]) return "default";
  if (!set[name] || set[name] !== given[name]) return "./svc";
  return fromFile.has(name) ? "file" : "environment";
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
