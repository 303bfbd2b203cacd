/** Messages that the egress gateway reads and answers: grants, callback tokens, listings. */
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { callbackSchema, MAX_CALLBACK_SECONDS, toolNamesSchema } from "./tool-call-server.ts";

const positive = z.number().int().positive();

/** The runner's cache key for an object. It is the same in every grant that names the object. */
export const copyKeySchema = z.string().regex(/^[\w-]{43}$/);

/** The 256 files that a request may name, plus the snapshot of a session. */
export const MAX_INPUTS = 257;

/** Claims of an egress grant, as the worker states them and the gateway seals them. Real ids. */
export const grantClaimsSchema = z.object({
  exec_id: idSchema,
  tenant_id: z.string().min(1),
  user_id: z.string().min(1),
  session_key: z.string().min(1),
  input_files: z.array(z.object({ id: idSchema, session_id: idSchema, name: z.string() })).max(MAX_INPUTS),
  read_sessions: z.array(idSchema).max(MAX_INPUTS),
  output_session_id: idSchema,
  max_upload_bytes: z.number().int().nonnegative(),
  max_output_files: z.number().int().nonnegative(),
  max_requests: z.number().int().nonnegative(),
  max_tool_calls: z.number().int().nonnegative(),
  /** The only id under which the run may store a snapshot of the session's state. */
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

/** The same payload after the gateway replaced ids by handles. */
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

/** Grants of rounds that are over. The gateway revokes them before it answers. */
export const endGrantsSchema = z.object({ ends: endsSchema });

/**
 * `ends`: grants of rounds that are over. The gateway revokes them in the background, even when the registration fails.
 * `callback`: asks for a sealed callback token of the same execution. Its ledger record has the given `grant_id`; a repeated request
 * uses the same record.
 */
export const registerGrantSchema = z.object({
  payload: maskablePayloadSchema,
  claims: grantClaimsSchema,
  ends: endsSchema.optional(),
  callback: callbackSchema.optional(),
});
export type RegisterGrant = z.infer<typeof registerGrantSchema>;

export const MAX_PREFETCHED_GRANTS = 16;

/**
 * Prefetches grants for future runs without inputs. Each has its own execution and output session; all other claims are the same.
 * The gateway gives out either all of them or none. `ends` as above.
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
 * The claims of a grant in an execution manifest. Ids of files and sessions are the handles of the masked payload;
 * tenant, user and session key are hashed.
 */
export const manifestScopeSchema = z.object({
  exec_id: idSchema,
  tenant_id: z.string().min(1),
  user_id: z.string().min(1),
  session_key: z.string().min(1),
  input_files: z
    .array(z.object({ id: z.string(), session_id: z.string(), name: z.string() }))
    .max(MAX_INPUTS),
  read_sessions: z.array(z.string()).max(MAX_INPUTS),
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
  /** Sealed by the gateway. */
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

/** Body of POST /internal/ptc-callback-token. Without `grantId` the token gets its own ledger record, which allows no uploads. */
export const mintCallbackSchema = z.object({
  executionId: idSchema,
  sessionId: idSchema,
  callbackToken: z.string().min(1).max(512),
  allowedToolNames: toolNamesSchema,
  timeoutSeconds: z.number().int().positive().max(MAX_CALLBACK_SECONDS).optional(),
  grantId: idSchema.optional(),
});
export type MintCallback = z.infer<typeof mintCallbackSchema>;

export interface MintedCallback {
  grant_id: string;
  callbackToken: string;
}
