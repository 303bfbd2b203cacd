/** Limits per language: the kind of variable for SANDBOX_LIMIT_OVERRIDES, parsed as strictly as all others. */
import { LANGUAGES } from "@svc/contracts";
import { z } from "zod";
import { MAX_JAIL_BYTES, MAX_PROCESSES, MIN_RUN_MEMORY, OPEN_FILES, OUTPUT_BYTES } from "./jail-bounds.ts";
import { parseLimitTable } from "./limit-table.ts";
import { LONGEST_TIME_MS, type Variable } from "./types.ts";

/** The entry for languages without their own entry, or without this limit in it. */
export const EVERY_LANGUAGE = "*";

const within = ({ min = 1, max }: { min?: number; max: number }) => z.int().min(min).max(max).optional();
const time = within({ max: LONGEST_TIME_MS });
const memory = within({ min: MIN_RUN_MEMORY, max: MAX_JAIL_BYTES });

const overrideSchema = z.strictObject({
  run_timeout: time,
  run_cpu_time: time,
  run_memory_limit: memory,
  compile_timeout: time,
  compile_memory_limit: memory,
  max_process_count: within({ max: MAX_PROCESSES }),
  max_open_files: within(OPEN_FILES),
  max_file_size: within({ max: MAX_JAIL_BYTES }),
  output_max_size: within({ max: OUTPUT_BYTES.max }),
});
type Override = Readonly<z.infer<typeof overrideSchema>>;
export type LimitOverrides = Readonly<Record<string, Override>>;

const NAMES = [EVERY_LANGUAGE, ...LANGUAGES.map(({ runner }) => runner)];
const NOTHING: LimitOverrides = Object.freeze({});

export function limitOverrides(doc: string): Variable<LimitOverrides> {
  const parse = (text: string) => parseLimitTable<Override>(text, overrideSchema, NAMES);
  return { parse, fallback: NOTHING, doc, secret: false };
}
