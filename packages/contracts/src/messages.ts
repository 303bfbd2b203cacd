/**
 * Schemas of the messages between components: the queued job and its answer, the runner's requests, the gateway's
 * internal routes, the file server's records. Public request and response schemas are in public.ts.
 */
import { z } from "zod";
import { idSchema } from "./ids.ts";
import { answeredCallsSchema, programmaticJobSchema, programmaticRunSchema } from "./programmatic.ts";

/** What the file server knows of a stored object. Times are ISO 8601 UTC with milliseconds. */
export const objectRecordSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  namespace: z.string(),
  filename: z.string(),
  size: z.number().int().nonnegative(),
  etag: z.string(),
  contentType: z.string(),
  lastModified: z.string(),
  readOnly: z.boolean(),
});
export type ObjectRecord = z.infer<typeof objectRecordSchema>;

/** Redis key of the cached record of one object: JSON of ObjectRecord. Written by the file server, read by the API. */
export function objectRecordKey(sessionId: string, fileId: string): string {
  return `svc:object:${sessionId}:${fileId}`;
}

/** Value under an object's key after its deletion: keeps a late reader from caching the record again. Ids are never reused. */
export const DELETED_RECORD = "null";

/** Body of POST /sessions/:sid/commit on the file server: makes pending objects visible under their namespace. */
export const commitSessionSchema = z.object({
  namespace: z.string().min(1),
  read_only: z.boolean(),
  files: z
    .array(idSchema)
    .min(1)
    .refine((files) => new Set(files).size === files.length, "must not name a file twice"),
});
export type CommitSession = z.infer<typeof commitSessionSchema>;

/** Header that names the namespace on calls to the file server: the file server refuses others' objects with 404. */
export const NAMESPACE_HEADER = "x-svc-namespace";
export const INTERNAL_TOKEN_HEADER = "x-svc-internal-token";
export const GRANT_HEADER = "x-svc-egress-grant";
export const MANIFEST_HEADER = "x-svc-execution-manifest";
export const ORIGINAL_FILENAME_HEADER = "x-original-filename";
export const READ_ONLY_HEADER = "x-read-only";
/** What the file server names in its refusal of an object whose id another object has. */
export const ID_TAKEN = { path: "fileId", problem: "is taken" } as const;

const positive = z.number().int().positive();

/** An authorised input as the job carries it: the caller's reference plus what storage recorded. */
export const jobFileSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  name: z.string(),
  kind: z.enum(["user", "agent", "skill"]),
  resource_id: z.string().optional(),
  version: z.number().optional(),
  entity_id: z.string().optional(),
});
export type JobFile = z.infer<typeof jobFileSchema>;

/** One execution in the queue. */
export const jobSchema = z.object({
  v: z.literal(1),
  request_id: z.string(),
  execution_id: idSchema,
  /** Name of the job in its queue; absent: the execution's id. Each try of each round of a program has its own. */
  job_id: z.string().optional(),
  session_id: idSchema,
  principal: z.object({ tenantId: z.string(), userId: z.string() }),
  output_namespace: z.string(),
  language: z.string(),
  version: z.string(),
  code: z.string(),
  args: z.array(z.string()),
  stdin: z.string().optional(),
  run_timeout: z.number().int().positive(),
  /** Bytes, when the caller's plan sets them. */
  run_memory_limit: z.number().int().positive().optional(),
  files: z.array(jobFileSchema),
  /** A program with tools: a first round or a replay. */
  ptc: programmaticJobSchema.optional(),
  /** A paused program that goes on: where it is, the round that begins, and which calls have their results. */
  resume: answeredCallsSchema.extend({ runner_url: z.string(), round: positive }).optional(),
  /** A paused program that is not needed any more: where it is. Nothing is run. */
  discard: z.object({ runner_url: z.string() }).optional(),
  /** Redis channel of the API process that waits; absent when no process does. */
  reply_to: z.string().optional(),
  enqueued_at: z.number(),
});
export type Job = z.infer<typeof jobSchema>;

/** The end of a job: an answer for the client, or an error of the table. */
export type JobResult =
  | { ok: true; answer: Record<string, unknown> }
  | {
      ok: false;
      error: { code: string; status: number; message: string; details?: { path: string; problem: string }[] };
    };

/** Redis key of the installed runtimes, JSON array of RuntimeInfo, kept fresh by workers. */
export const RUNTIMES_KEY = "svc:runtimes";
/** Redis key of the time (ms since 1970) of the last execution that went through queue, worker and jail. */
export const CANARY_KEY = "svc:canary:last-success";

export const runtimeInfoSchema = z.object({
  language: z.string(),
  version: z.string(),
  aliases: z.array(z.string()),
  runtime: z.string().optional(),
});
export type RuntimeInfo = z.infer<typeof runtimeInfoSchema>;

const contentFileSchema = z.object({
  name: z.string(),
  content: z.string(),
  encoding: z.enum(["utf8", "base64", "hex"]).nullish(),
});
/** With this key the runner keeps and finds its copy of an object; the same in every grant that names the object. */
const copyKeySchema = z.string().regex(/^[\w-]{43}$/);

const referencedFileSchema = z.object({
  name: z.string(),
  id: z.string().min(1),
  storage_session_id: z.string().min(1),
  entity_id: z.string().nullish(),
  copy_key: copyKeySchema.nullish(),
});
const MAX_ARGS = 256;
const MAX_ARG_BYTES = 100_000;

/** Arguments of a program, passed as they are. */
export const argsSchema = z
  .array(
    z
      .string()
      .refine((arg) => !arg.includes("\0"), "must not contain NUL")
      .refine((arg) => Buffer.byteLength(arg) <= MAX_ARG_BYTES, `must have at most ${MAX_ARG_BYTES} bytes`),
  )
  .max(MAX_ARGS, `must have at most ${MAX_ARGS} items`);

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
  env_vars: z.record(z.string(), z.string()).nullish(),
  run_timeout: positive.nullish(),
  compile_timeout: positive.nullish(),
  run_memory_limit: positive.nullish(),
  ptc: programmaticRunSchema.nullish(),
});
export type ExecuteRequest = z.infer<typeof executeRequestSchema>;
export type ContentFile = z.infer<typeof contentFileSchema>;
export type ReferencedFile = z.infer<typeof referencedFileSchema>;

export function hasContent(file: ContentFile | ReferencedFile): file is ContentFile {
  return "content" in file;
}

/** Claims of an egress grant, as the worker states them and the gateway seals them. Real ids. */
export const grantClaimsSchema = z.object({
  exec_id: idSchema,
  tenant_id: z.string().min(1),
  user_id: z.string().min(1),
  session_key: z.string().min(1),
  input_files: z.array(z.object({ id: idSchema, session_id: idSchema, name: z.string() })).max(256),
  read_sessions: z.array(idSchema).max(256),
  output_session_id: idSchema,
  max_upload_bytes: z.number().int().nonnegative(),
  max_output_files: z.number().int().nonnegative(),
  max_requests: z.number().int().nonnegative(),
  max_tool_calls: z.number().int().nonnegative(),
  /** The one id that may be a snapshot of the session's state. */
  snapshot_object_id: idSchema.optional(),
  lifetime_seconds: positive,
});
export type GrantClaims = z.infer<typeof grantClaimsSchema>;

/** The parts of an execute request that hold ids: the gateway turns them into handles. */
export const maskablePayloadSchema = z.object({
  session_id: z.string(),
  output_session_id: z.string(),
  files: z.array(z.object({ name: z.string(), id: z.string(), storage_session_id: z.string() })),
});
export type MaskablePayload = z.infer<typeof maskablePayloadSchema>;

/** What the gateway made of it. */
const maskedPayloadSchema = maskablePayloadSchema.extend({
  files: z.array(maskablePayloadSchema.shape.files.element.extend({ copy_key: copyKeySchema.optional() })),
});

/** Why a grant ends. */
export const grantEndSchema = z.enum(["completed", "failed", "timeout", "cancelled"]);
export type GrantEnd = z.infer<typeof grantEndSchema>;

const endedGrantSchema = z.object({ grant_id: idSchema, reason: grantEndSchema });
export type EndedGrant = z.infer<typeof endedGrantSchema>;
export const MAX_ENDED_GRANTS = 64;
const endsSchema = z.array(endedGrantSchema).max(MAX_ENDED_GRANTS);

/** Grants of rounds that are over, revoked before the answer. */
export const endGrantsSchema = z.object({ ends: endsSchema });

/**
 * `ends`: grants of rounds that are over. They are revoked in the background, whatever becomes of the new one. `callback`: seals a
 * callback token of the same execution, with a ledger record of the given id; asked for again it is paid for by the same record.
 */
export const registerGrantSchema = z.object({
  payload: maskablePayloadSchema,
  claims: grantClaimsSchema,
  ends: endsSchema.optional(),
  callback: programmaticJobSchema.shape.callback.optional(),
});
export type RegisterGrant = z.infer<typeof registerGrantSchema>;

export const MAX_PREFETCHED_GRANTS = 16;

/**
 * Grants for runs without inputs that may come: each is of an execution and an output session of its own, with the same claims
 * otherwise. All are registered or none is given out. `ends` as above.
 */
export const prefetchRequestSchema = z.object({
  claims: grantClaimsSchema.omit({
    exec_id: true,
    input_files: true,
    read_sessions: true,
    output_session_id: true,
    snapshot_object_id: true,
  }),
  runs: z
    .array(grantClaimsSchema.pick({ exec_id: true, output_session_id: true }))
    .min(1)
    .max(MAX_PREFETCHED_GRANTS),
  ends: endsSchema.optional(),
});
export type PrefetchRequest = z.infer<typeof prefetchRequestSchema>;

/**
 * The claims of a grant as an execution manifest states them: ids of files and sessions are the handles of the masked
 * payload, tenant, user and session key are hashed.
 */
export const manifestScopeSchema = z.object({
  exec_id: idSchema,
  tenant_id: z.string().min(1),
  user_id: z.string().min(1),
  session_key: z.string().min(1),
  input_files: z.array(z.object({ id: z.string(), session_id: z.string(), name: z.string() })).max(256),
  read_sessions: z.array(z.string()).max(256),
  output_session_id: z.string().min(1),
  max_upload_bytes: z.number().int().nonnegative(),
  max_output_files: z.number().int().nonnegative(),
  max_requests: z.number().int().nonnegative(),
  max_tool_calls: z.number().int().nonnegative(),
});
export type ManifestScope = z.infer<typeof manifestScopeSchema>;

export const registeredGrantSchema = z.object({
  grant_id: z.string(),
  payload: maskedPayloadSchema,
  egressGrantToken: z.string(),
  executionManifestClaims: manifestScopeSchema,
  /** Sealed. */
  callback_token: z.string().optional(),
});
export type RegisteredGrant = z.infer<typeof registeredGrantSchema>;

/** In the order of `runs`. */
export const prefetchedGrantsSchema = z.object({ grants: z.array(registeredGrantSchema) });

/** An entry of the gateway's listing: ids are handles. */
export const listedObjectSchema = z.object({
  id: z.string(),
  name: z.string(),
  storage_session_id: z.string(),
  size: z.number().int().nonnegative(),
  contentType: z.string(),
  lastModified: z.string(),
  read_only: z.boolean().optional(),
});
export type ListedObject = z.infer<typeof listedObjectSchema>;
