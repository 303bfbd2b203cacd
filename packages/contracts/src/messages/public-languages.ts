/** Schemas of GET /v1/languages and of a runner's description of its runtimes. */
import { z } from "zod";

const count = z.number().int().nonnegative();

export const installedPackageSchema = z.object({
  name: z.string().max(128).meta({ description: "Name of the library.", example: "numpy" }),
  version: z.string().max(128).meta({ description: "Its version.", example: "2.2.4" }),
});

export const languageLimitsSchema = z
  .object({
    run_timeout_ms: count.meta({
      description: "Wall time of a run without `run_timeout`, in ms.",
      example: 60_000,
    }),
    memory_bytes: count.meta({
      description: "Memory of all processes of a run together.",
      example: 536_870_912,
    }),
    output_bytes: count.meta({ description: "What is kept of each output stream.", example: 65_536 }),
    files: count.meta({ description: "Files that a run returns.", example: 50 }),
    file_bytes: count.meta({ description: "Largest file that a run returns.", example: 10_000_000 }),
    processes: count.meta({ description: "Processes and threads of a run.", example: 256 }),
  })
  .meta({ id: "LanguageLimits", description: "What a run of this language may use." });
export type LanguageLimits = z.infer<typeof languageLimitsSchema>;

const MAX_PACKAGES = 5000;
const MAX_COMMANDS = 1000;

/** An installed runtime, as the runner describes it and as workers publish it in Redis. */
export const runtimeInfoSchema = z.object({
  language: z.string(),
  version: z.string(),
  aliases: z.array(z.string()),
  runtime: z.string().optional(),
  packages: z.array(installedPackageSchema).max(MAX_PACKAGES).optional(),
  commands: z.array(z.string().max(128)).max(MAX_COMMANDS).optional(),
  limits: languageLimitsSchema.optional(),
});
export type RuntimeInfo = z.infer<typeof runtimeInfoSchema>;

export const languageSchema = z
  .object({
    name: z
      .string()
      .meta({ description: "The name in answers; a request may use it or an alias.", example: "python" }),
    version: z.string().nullable().meta({ description: "Null when it is absent.", example: "3.13.5" }),
    aliases: z
      .array(z.string())
      .meta({ description: "Other names that a request may use.", example: ["py", "python3"] }),
    file_extension: z.string().meta({ description: "Of the file that holds the program.", example: "py" }),
    status: z
      .enum(["ready", "absent"])
      .meta({ description: "`absent`: not installed here.", example: "ready" }),
    packages: z
      .array(installedPackageSchema)
      .meta({ description: "Libraries beside those of the language.", example: [] }),
    commands: z
      .array(z.string())
      .meta({ description: "Programs that may be called.", example: ["git", "jq", "sqlite3"] }),
    limits: languageLimitsSchema
      .optional()
      .meta({ description: "Languages that are not installed have none." }),
    network: z.literal(false).meta({ description: "No program has a network.", example: false }),
  })
  .meta({ id: "Language", description: "A language, and what its programs find." });
export type LanguageInfo = z.infer<typeof languageSchema>;

export const languagesResponseSchema = z
  .object({
    languages: z
      .array(languageSchema)
      .meta({ description: "All that are known, also those that are absent." }),
  })
  .meta({ id: "Languages", description: "What can be run here." });

export const languagesQuerySchema = z.object({
  format: z
    .enum(["json", "text"])
    .optional()
    .meta({ description: "`text`: a plain description for a model's tool definition.", example: "text" }),
});
