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
  /** Variables for the caller's program only, under any name. The runner filters `env_vars`, but not these. */
  env: environmentSchema.nullish(),
  env_vars: z.record(z.string(), z.string()).nullish(),
  run_timeout: positive.nullish(),
  compile_timeout: positive.nullish(),
  run_memory_limit: positive.nullish(),
  /** The execution's id for the log. It grants nothing. */
  exec_id: idSchema.nullish(),
  ptc: programmaticRunSchema.nullish(),
  /**
   * The run continues a persistent session, and the runner stores the new state under `file_id`. `restore`: the run begins with
   * the snapshot, which is the request's file named `filename`.
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
  /** The program gets all answers before it resumes. Answers that are not here come from the tool call server. */
  ptc: answeredCallsSchema.extend({ execution_id: idSchema, round: positive }),
});
export type ResumeRequest = z.infer<typeof resumeRequestSchema>;
