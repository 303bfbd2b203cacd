/**
 * What a caller's plan allows: SVC_PLAN_LIMITS as a kind of variable, read as strictly as all others, and the choice of one
 * plan's limits. A plan can only tighten the limits of the service: each use lowers it to the limit of the service.
 */
import { z } from "zod";
import { parseSize, type Variable } from "./types.ts";

/** Bytes. A limit that is absent is the service's own. */
export interface PlanLimits {
  run_memory_limit?: number | undefined;
  max_file_size?: number | undefined;
}
export type Plans = Readonly<Record<string, PlanLimits>>;

/** Programs do not start in less; SANDBOX_RUN_MEMORY_LIMIT has the same bound. */
export const MIN_RUN_MEMORY = 16 * 2 ** 20;

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
  return { parse: parsePlans, fallback: NOTHING as Plans, doc, secret: false };
}

function parsePlans(text: string): Plans {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new RangeError("must be JSON");
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new RangeError("must be a JSON object of plans");
  }
  const entries = Object.entries(given).map(([plan, limits]) => {
    const result = planSchema.safeParse(limits);
    if (result.success) return [plan, Object.freeze(result.data)] as const;
    const [issue] = result.error.issues;
    throw new RangeError(`is wrong at ${[plan, ...(issue?.path ?? [])].join(".")}: ${issue?.message}`);
  });
  return Object.freeze(Object.fromEntries(entries));
}

/** The limits of a plan; of `default` when it is not listed or the caller has none. */
export function limitsOfPlan(plans: Plans, plan: string | undefined): PlanLimits {
  for (const name of [plan, DEFAULT_PLAN]) {
    if (name !== undefined && Object.hasOwn(plans, name)) return plans[name] ?? NOTHING;
  }
  return NOTHING;
}
