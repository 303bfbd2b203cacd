/**
 * Command lines of ./svc that a person can paste. Each has the options of the copy that the present command is about, so it
 * addresses the same copy. Texts that only mention a command, and do not ask for it as a step, have no options.
 */
import { dataFolder } from "./instance.ts";
import { shown } from "./system/run.ts";

/** The options that select a copy, as they were given. */
export interface CopyFlags {
  "data-dir"?: string | undefined;
  "port-offset"?: string | undefined;
  settings?: string | undefined;
}

const NAMES = ["data-dir", "port-offset", "settings"] as const;

/** The command that runs ./svc when each component has a container of its own (docs/containers.md). */
export const IN_CONTAINERS = "podman-compose run --rm --no-deps -T init";

let program = "./svc";
let meant: readonly string[] = [];

/** From now on, command lines are for a person whose components run in containers. */
export function meanContainers(): void {
  program = IN_CONTAINERS;
}

export const areContainersMeant = () => program === IN_CONTAINERS;

/** Replaces `./svc` in a text by the command that is typed here. */
export const asTyped = (text: string) => text.replaceAll("./svc", program);

/** Sets the copy that later command lines refer to. Leaves out a data folder that is the default anyway. */
export function meanCopy(flags: CopyFlags, env: Readonly<Record<string, string | undefined>> = {}): void {
  meant = NAMES.flatMap((name) => {
    const value = flags[name];
    if (value === undefined || (name === "data-dir" && dataFolder(flags, env) === dataFolder({}, env)))
      return [];
    return [`--${name}`, value];
  });
}

/** Returns `./svc COMMAND` with the options of that copy. */
export function svcLine(command: string): string {
  return [program, command, ...(meant.length === 0 ? [] : [shown(meant)])].join(" ");
}

/** The two steps that restart a running copy from scratch. */
export const startAgain = () => `${svcLine("down")}, then ${svcLine("up")}`;
