/** Takes the file descriptors of a running process away, and gives them back. Needs root and util-linux. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** No further descriptor can be opened. Answers what takes that back. */
export function exhaustDescriptors(pid: number): () => void {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const id = (kind: "Uid" | "Gid") => new RegExp(`^${kind}:\\t(\\d+)`, "m").exec(status)?.[1] ?? "";
  // Where root lacks a capability for it, as in containers, only the same user may.
  const asOwner = [`--reuid=${id("Uid")}`, `--regid=${id("Gid")}`, "--clear-groups"];
  const limit = (soft: string) =>
    execFileSync("setpriv", [...asOwner, "prlimit", `--pid=${pid}`, `--nofile=${soft}:`]);
  const [, before = ""] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8")) ?? [];
  limit(String(readdirSync(`/proc/${pid}/fd`).length));
  return () => void limit(before);
}
