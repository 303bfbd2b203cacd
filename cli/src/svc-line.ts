/** Lines of ./svc for a person to type. Pure. */
import { shown } from "./system/run.ts";

/** The options that say which copy is meant, where its data folder is not the default. */
export interface CopyFlags {
  "data-dir"?: string | undefined;
  settings?: string | undefined;
}

/** What starts the copy that the options name. */
export function startLine(flags: CopyFlags & { "port-offset"?: string | undefined }): string {
  const offset = flags["port-offset"];
  return `${svcLine("up -d", flags)}${offset === undefined ? "" : ` --port-offset ${shown([offset])}`}`;
}

/** `./svc COMMAND` for the same copy. */
export function svcLine(command: string, flags: CopyFlags): string {
  const options = (["data-dir", "settings"] as const).flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
  return ["./svc", command, ...(options.length === 0 ? [] : [shown(options)])].join(" ");
}
