/** Messages that the egress gateway reads and answers: grants, callback tokens, listings. */
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { callbackSchema, MAX_CALLBACK_SECONDS, toolNamesSchema } from "./tool-call-server.ts";

const positive = z.number().int().positive();

/** With this key the runner keeps and finds its copy of an object; the same in every grant that names the object. */
export const copyKeySchema = z.string().regex(/^[\w-]{43}$/);

/** The most files that a request may name, and the snapshot of a session. */
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
  callback: callbackSchema.optional(),
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

/** Body of POST /internal/ptc-callback-token. Without `grantId` the token gets a record of its own, without uploads. */
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
