/**
 * Limits of callers' plans: the kind of variable for SVC_PLAN_LIMITS, parsed as strictly as all others, and the lookup of a plan.
 * A plan can only tighten the limits of the service: each use takes the lower of the two.
 */
import { z } from "zod";
import { MIN_RUN_MEMORY } from "./jail-bounds.ts";
import { parseLimitTable } from "./limit-table.ts";
import { parseSize, type Variable } from "./types.ts";

/** In bytes. Where a limit is absent, the service's own limit applies. */
export interface PlanLimits {
  run_memory_limit?: number | undefined;
  max_file_size?: number | undefined;
}
export type Plans = Readonly<Record<string, PlanLimits>>;

const DEFAULT_PLAN = "default";
const NOTHING: PlanLimits = Object.freeze({});

const bytes = (min: number) =>
  z.union([z.number(), z.string()]).transform((given, context) => {
    try {
      return parseSize(String(given), { min });
    } catch (error) {
      context.addIssue((error as Error).message);
      return z.NEVER;
    }
  });
const planSchema = z.strictObject({
  run_memory_limit: bytes(MIN_RUN_MEMORY).optional(),
  max_file_size: bytes(1).optional(),
});

export function planLimits(doc: string): Variable<Plans> {
  const parse = (text: string) => parseLimitTable<PlanLimits>(text, planSchema);
  return { parse, fallback: NOTHING as Plans, doc, secret: false };
}

/** The limits of a plan; of `default` when it is not listed or the caller has none. */
export function limitsOfPlan(plans: Plans, plan: string | undefined): PlanLimits {
  for (const name of [plan, DEFAULT_PLAN]) {
    if (name !== undefined && Object.hasOwn(plans, name)) return plans[name] ?? NOTHING;
  }
  return NOTHING;
}
