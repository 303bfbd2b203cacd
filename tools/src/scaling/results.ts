/** The measurements of the repository that the model rests on. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { type Result, readResult } from "../bench/result.ts";
import type { SoakResult } from "../bench/soak/run.ts";
import type { Accounts } from "./measure/result.ts";

export interface Measurements {
  quiet: Result;
  accounts: Accounts;
  soak: SoakResult;
  sessions: Result;
}

export function readMeasurements(): Measurements {
  const folder = join(ROOT, "bench/results");
  const accounts = JSON.parse(readFileSync(join(folder, "accounts.json"), "utf8")) as Accounts;
  return {
    quiet: readResult<Result>(join(folder, "quiet.json"), "bench"),
    sessions: readResult<Result>(join(folder, "sessions.json"), "bench"),
    soak: readResult<SoakResult>(join(folder, "soak.json"), "soak"),
    accounts,
  };
}
