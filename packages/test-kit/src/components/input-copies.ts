/** The nameless files in which a process keeps its copies of inputs, opened through /proc as only root and its user can. */
import { readdirSync, readlinkSync } from "node:fs";

export function copiesOf(pid: number | "self"): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder)
    .map((number) => `${folder}/${number}`)
    .filter((path) => targetOf(path).includes("/svc-input-"));
}

/** A descriptor may be closed between two looks. */
function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
