/** Lets jaild itself try the features that a jail needs. Returns one finding for each line that jaild prints. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { JAILD, rootImage } from "../components.ts";
import type { Instance } from "../instance.ts";
import { svcLine } from "../svc-line.ts";
import { findJailsGroup } from "../system/jails-group.ts";
import { isRoot } from "../system/root.ts";
import { usesMicrovms } from "../topology.ts";
import { type Finding, fail, ok, untried, warn } from "./finding.ts";

export function jail(instance: Instance): Finding[] {
  if (usesMicrovms(process.env)) return [ok("jail", "made inside of microVMs, and not on this machine")];
  if (!existsSync(JAILD))
    return [untried("jail", "not built yet", `${svcLine("up")} builds it.`, "after ./svc up")];
  if (!isRoot()) {
    const note = "its features can only be tried by root";
    return [untried("jail", note, `Run ${svcLine("doctor")} as root.`, "by root")];
  }
  // A copy that was never started has no image. Any other image also shows whether this host can run jails.
  const images = [instance.image, join(instance.packagesDir, "current")];
  const image = images.find((folder) => existsSync(join(folder, "rootfs")));
  const built = image !== undefined;
  const group = findJailsGroup({ mayMove: false });
  const args = [
    "--check",
    `--root=${image === undefined ? "/" : rootImage({ image })}`,
    `--uid-base=${instance.jobUidBase}`,
    `--gid-base=${instance.jobGidBase}`,
    `--cgroup=${instance.cgroup}`,
    ...(group === undefined ? [] : [`--cgroup-base=${group}`]),
  ];
  const { stdout, stderr, status } = spawnSync(JAILD, args, { encoding: "utf8" });
  const reason = reasonOf(stderr ?? "");
  const findings = (stdout ?? "")
    .split("\n")
    // Without an image there is nothing to look at yet.
    .filter((line) => line !== "" && (built || !/^\w+ image\b/.test(line)))
    .map((line) => jailFinding(line, reason));
  if (status === 0 || findings.some(({ grade }) => grade === "fail")) return findings;
  if (!built && status === 1) return findings;
  return [...findings, silentEnd(status, reason)];
}

/** The finding for a check that failed without naming a feature. `status`: null when a signal ended it. */
export function silentEnd(status: number | null, reason?: string): Finding {
  const how = status === null ? "a signal" : `exit code ${status}`;
  return fail(
    "jail",
    `jaild --check ended with ${how}`,
    reason ?? "The kernel's messages may say why: dmesg.",
  );
}

/** `line`: `GRADE FEATURE text`. `reason`: why jaild gave up. */
export function jailFinding(line: string, reason?: string): Finding {
  const [, grade = "fail", feature = line, text = ""] = /^(\w+) (\S+) ?(.*)$/.exec(line) ?? [];
  if (grade === "ok") return ok("jail", `${feature} ${text}`.trim());
  if (grade === "note") return ok("jail", `${feature}: ${text}`);
  if (grade === "warn") return warn("jail", `${feature} is not as it should be`, text);
  const why = feature === "cgroups" && reason !== undefined ? `: ${reason}` : "";
  return fail(
    "jail",
    `${feature} does not work${why}`,
    text || "The kernel or the container does not allow it.",
  );
}

/** The last line of jaild's log. */
function reasonOf(stderr: string): string | undefined {
  const line = stderr.trim().split("\n").at(-1) ?? "";
  if (line === "") return undefined;
  try {
    return String((JSON.parse(line) as { msg: unknown }).msg);
  } catch {
    return line;
  }
}
