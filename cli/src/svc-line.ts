/**
 * Lines of ./svc for a person to paste. Each has the options of the copy that this command line is about, so it means the
 * same copy. Texts that name a command as a thing, not as a step, stay without options.
 */
import { dataFolder } from "./instance.ts";
import { shown } from "./system/run.ts";

/** The options that say which copy is meant, as they were given. */
export interface CopyFlags {
  "data-dir"?: string | undefined;
  "port-offset"?: string | undefined;
  settings?: string | undefined;
}

const NAMES = ["data-dir", "port-offset", "settings"] as const;

/** What runs ./svc where each component has a container of its own (docs/containers.md). */
export const IN_CONTAINERS = "podman-compose run --rm --no-deps -T init";

let program = "./svc";
let meant: readonly string[] = [];

/** Says that every later line is for the shell of a person whose components run in containers. */
export function meanContainers(): void {
  program = IN_CONTAINERS;
}

export const areContainersMeant = () => program === IN_CONTAINERS;

/** A text that names commands of ./svc, as they are typed here. */
export const asTyped = (text: string) => text.replaceAll("./svc", program);

/** Says which copy every later line is about. A data folder that is meant without the option is left out. */
export function meanCopy(flags: CopyFlags, env: Readonly<Record<string, string | undefined>> = {}): void {
  meant = NAMES.flatMap((name) => {
    const value = flags[name];
    if (value === undefined || (name === "data-dir" && dataFolder(flags, env) === dataFolder({}, env)))
      return [];
    return [`--${name}`, value];
  });
}

/** `./svc COMMAND` for that copy. */
export function svcLine(command: string): string {
  return [program, command, ...(meant.length === 0 ? [] : [shown(meant)])].join(" ");
}

/** The two steps that start a running copy anew. */
export const startAgain = () => `${svcLine("down")}, then ${svcLine("up")}`;
