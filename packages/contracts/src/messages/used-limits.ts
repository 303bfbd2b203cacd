/** The limits of a run, for the runner's answers and for the public ones. */
import { z } from "zod";

/** The limits that applied: those of the request, lowered to those of the service. */
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
