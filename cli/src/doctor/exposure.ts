/** Checks who could read the secrets of a copy, and who can reach its API. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { isLoopback } from "@svc/service-kit/config/load";
import type { Instance } from "../instance.ts";
import { modeOf } from "../mode.ts";
import { shown } from "../system/run.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Files of the data folder that only their owner may read. */
const SECRET_FILES = ["secrets.env", "svc.env", "api-keys.jsonl", "librechat-key.pem", "token-key.pem"];

export function secretFiles({ dataDir }: Pick<Instance, "dataDir">): Finding {
  const open = SECRET_FILES.map((name) => join(dataDir, name)).filter(isOpenToOthers);
  return open.length === 0
    ? ok("secret files", "none that others can read")
    : fail("secret files", `others can read: ${open.join(", ")}`, shown(["chmod", "600", ...open]));
}

function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0;
}

export function address(env: Readonly<Record<string, string | undefined>>): Finding {
  const { host } = modeOf(env);
  return isLoopback(host)
    ? ok("address", `${host}: this machine alone`)
    : warn(
        "address",
        `${host}: others may reach the API, by plain HTTP`,
        "Unset SERVICE_HOST where the proxy runs on this machine, or let a firewall admit the proxy alone.",
      );
}
