/**
 * What a worker reports after a run. It sends the result and gets it back with real ids in place of handles. It also reports whether the state of
 * the session could be restored, which is kept in the grant's record.
 */
import {
  openGrant,
  type RestoreOutcome,
  resolveHandle,
  type SealKeys,
  TokenRefused,
} from "@svc/capabilities";
import { z } from "zod";
import { nowSeconds } from "./authority.ts";
import { refusals } from "./refusals.ts";

const fields = z.object({
  result: z.record(z.string(), z.unknown()).optional(),
  egressGrantToken: z.string().optional(),
  restored: z.boolean().optional(),
  session_state_restore_failed: z.boolean().optional(),
  reason: z.string().max(256).optional(),
});

export const restoreResultSchema = fields.superRefine((body, context) => {
  const problem = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  if (body.result === undefined && body.restored === undefined) problem("result", "or restored is required");
  if (body.result !== undefined && body.egressGrantToken === undefined)
    problem("egressGrantToken", "is required with result");
  if (body.restored === undefined && (body.session_state_restore_failed ?? body.reason) !== undefined)
    problem("restored", "is required with session_state_restore_failed and reason");
});
export type RestoreResult = z.infer<typeof fields>;

export function outcomeOf(body: RestoreResult): RestoreOutcome | undefined {
  const { restored, session_state_restore_failed, reason } = body;
  return restored === undefined ? undefined : { restored, session_state_restore_failed, reason };
}

const ID_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "session_id",
  "storage_session_id",
  "output_session_id",
]);
const HANDLE = /^ceg1\./;
const MAX_DEPTH = 32;

/** The result with real ids. Only fields that hold ids are changed; what a program printed stays as it is. */
export function unmasked(keys: SealKeys, grantId: string, body: RestoreResult): unknown {
  const now = nowSeconds();
  return refusals(() => {
    const grant = openGrant(keys, body.egressGrantToken, now);
    const walk = (value: unknown, field: string, depth: number): unknown => {
      if (typeof value === "string") {
        return ID_FIELDS.has(field) && HANDLE.test(value) ? resolveHandle(keys, grant, value, now) : value;
      }
      if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return value;
      if (Array.isArray(value)) return value.map((item) => walk(item, "", depth + 1));
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, walk(item, name, depth + 1)]),
      );
    };
    if (grant.grant_id !== grantId) throw new TokenRefused("scope_mismatch");
    return walk(body.result, "", 0);
  });
}
