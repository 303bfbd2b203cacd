/** Schemas of the routes of persistent sessions (contract section 18.3). */
import { z } from "zod";
import { idSchema } from "../ids.ts";

const time = (description: string, example: string) => z.string().meta({ description, example });

export const sessionSchema = z
  .object({
    id: z.string().meta({ description: "Id of the session.", example: "Zq0aM3kX9vB-t7YcRw2_e" }),
    hint: z.string().optional().meta({
      description: "The `runtime_session_hint` of its runs; absent for the default session.",
      example: "notebook-1",
    }),
    created_at: time("When its first run began.", "2026-11-20T09:00:00.000Z"),
    last_used_at: time("When it was last used.", "2026-11-20T09:30:00.000Z"),
    expires_at: time("When it ends if it is not used before.", "2026-11-27T09:30:00.000Z"),
    size: z
      .number()
      .int()
      .meta({ description: "Bytes of its state as it is stored; 0 without one.", example: 20_480 }),
    language_last: z.string().meta({ description: "Language of its last run.", example: "python" }),
  })
  .meta({ id: "Session", description: "A persistent session of the caller." });

export const sessionListSchema = z
  .object({ sessions: z.array(sessionSchema).meta({ description: "The last used one first." }) })
  .meta({ id: "SessionList", description: "All persistent sessions of the caller." });

export const sessionIdSchema = z.object({
  id: idSchema.meta({ description: "Id of the session.", example: "Zq0aM3kX9vB-t7YcRw2_e" }),
});

export const sessionFilesSchema = z
  .object({
    files: z
      .array(
        z.object({
          name: z.string().meta({ description: "Path under /mnt/data.", example: "data/points.csv" }),
          size: z.number().int().meta({ description: "Bytes.", example: 1024 }),
          mode: z.number().int().meta({ description: "Permission bits, as a number.", example: 420 }),
        }),
      )
      .meta({ description: "By path." }),
  })
  .meta({ id: "SessionFiles", description: "The files of the current state of a session." });

export const sessionFileQuerySchema = z.object({
  name: z.string().min(1).meta({ description: "Path under /mnt/data.", example: "data/points.csv" }),
});
