/** The service that a command line addresses: the one that --url names, or else the copy on this machine. */
import type { INSTANCE_OPTIONS } from "./instance.ts";
import type { Values } from "./options.ts";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";
import { findCopy } from "./running-copy.ts";
import { svcLine } from "./svc-line.ts";

type Named = Values<typeof INSTANCE_OPTIONS> & { url: string | undefined };

/** A running copy of the data folder states its own address. */
export function meantAddress(values: Named): string {
  if (values.url === undefined) {
    const { instance, state } = findCopy(values);
    return state?.url ?? instance.url;
  }
  const other = (["data-dir", "port-offset"] as const).find((name) => values[name] !== undefined);
  if (other === undefined) return values.url;
  throw new Problem(`--url and --${other} exclude each other`, undefined, USAGE_EXIT_CODE);
}

/** Advice for the case that nothing answers at the address. */
export function whenUnreachable({ url }: Pick<Named, "url">): string {
  return url === undefined
    ? `${svcLine("up -d")} starts one.`
    : "Check the address, and whether the service runs there.";
}
