/** Requests that the runner reads: POST /execute and the resume of a paused program. */
import { z } from "zod";
import { argsSchema } from "../args.ts";
import { environmentSchema } from "../environment.ts";
import { idSchema } from "../ids.ts";
import { SNAPSHOT_NAME } from "../sessions.ts";
import { copyKeySchema } from "./gateway.ts";
import { answeredCallsSchema, programmaticRunSchema } from "./runner-programmatic.ts";

const positive = z.number().int().positive();

const contentFileSchema = z.object({
  name: z.string(),
  content: z.string(),
  encoding: z.enum(["utf8", "base64", "hex"]).nullish(),
});

const referencedFileSchema = z.object({
  name: z.string(),
  id: z.string().min(1),
  storage_session_id: z.string().min(1),
  entity_id: z.string().nullish(),
  copy_key: copyKeySchema.nullish(),
});

/** Body of POST /execute on the runner. */
export const executeRequestSchema = z.object({
  language: z.string().min(1),
  version: z.string().nullish(),
  files: z.array(z.union([contentFileSchema, referencedFileSchema])).min(1),
  execution_manifest: z.string().nullish(),
  egress_grant: z.string().nullish(),
  session_id: z.string().nullish(),
  output_session_id: z.string().nullish(),
  args: argsSchema.nullish(),
  stdin: z.string().nullish(),
  /** Of the caller's program alone, whatever the names; `env_vars` are filtered. */
  env: environmentSchema.nullish(),
  env_vars: z.record(z.string(), z.string()).nullish(),
  run_timeout: positive.nullish(),
  compile_timeout: positive.nullish(),
  run_memory_limit: positive.nullish(),
  /** Name of the execution in the log; it grants nothing. */
  exec_id: idSchema.nullish(),
  ptc: programmaticRunSchema.nullish(),
  /**
   * The run continues a persistent session: its state is stored under `file_id`. `restore`: the file of the request named `filename`
   * is the snapshot to begin with.
   */
  persist_session: z
    .object({ file_id: idSchema, filename: z.literal(SNAPSHOT_NAME), restore: z.boolean() })
    .nullish(),
});
export type ExecuteRequest = z.infer<typeof executeRequestSchema>;
export type ContentFile = z.infer<typeof contentFileSchema>;
export type ReferencedFile = z.infer<typeof referencedFileSchema>;

export function hasContent(file: ContentFile | ReferencedFile): file is ContentFile {
  return "content" in file;
}

/** Body of POST /api/v2/executions/:id/resume on the runner. Signed like an execute request, without files. */
export const resumeRequestSchema = z.object({
  execution_manifest: z.string().nullish(),
  egress_grant: z.string().nullish(),
  session_id: z.string(),
  output_session_id: z.string(),
  run_timeout: positive,
  /** The answers reach the program before it goes on: those that are not here come from the tool call server. */
  ptc: answeredCallsSchema.extend({ execution_id: idSchema, round: positive }),
});
export type ResumeRequest = z.infer<typeof resumeRequestSchema>;
