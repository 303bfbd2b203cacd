/** What the programmatic routes work with. */
import type { ExecDeps } from "../exec/route.ts";
import type { Once } from "../once/once.ts";
import type { Cancels } from "./cancels.ts";
import type { EarlierAnswers } from "./earlier-answers.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import type { Rounds } from "./rounds.ts";
import type { RunningPrograms } from "./running.ts";
import type { ContinuationTokens } from "./token.ts";

export interface ProgrammaticDeps
  extends Pick<
    ExecDeps,
    "config" | "runtimes" | "principalOf" | "planLimitsOf" | "lookupRecords" | "holdingSlot"
  > {
  rounds: Rounds;
  running: RunningPrograms;
  cancels: Cancels;
  once: Once;
  earlierAnswers: EarlierAnswers;
  tokens: ContinuationTokens;
  metrics: ProgrammaticMetrics;
}
