/** The limits that a run had: part of the runner's answers and of the public ones. */
import { z } from "zod";

/** After the request's were lowered to the service's. */
export const usedLimitsSchema = z
  .object({
    run_timeout_ms: z.number().int().meta({ description: "Wall time of the run in ms.", example: 60_000 }),
    memory_bytes: z
      .number()
      .int()
      .meta({ description: "Memory of all its processes in bytes.", example: 536_870_912 }),
  })
  .meta({
    id: "UsedLimits",
    description: "The limits that were used: a request's are lowered to the service's.",
  });
export type UsedLimits = z.infer<typeof usedLimitsSchema>;
