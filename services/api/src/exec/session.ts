/** Which persistent session a run continues: the one its hint names, else the one that the execution in `session_id` used, else the default. */
import { isId, type Job, namespaceOf, type Principal, sessionHintSchema } from "@svc/contracts";
import { invalidRequest, storeCall } from "@svc/service-kit";
import type { SessionStore } from "@svc/session-store";

interface SessionFields {
  runtime_session_hint?: unknown;
  session_id?: unknown;
}

/** The hint of a request. Throws `invalid_request` for a malformed hint. */
function parseHint({ runtime_session_hint: hint }: SessionFields): string | undefined {
  if (hint === undefined || hint === null) return undefined;
  const parsed = sessionHintSchema.safeParse(hint);
  if (parsed.success) return parsed.data;
  const problem = "must have 1 to 128 of A-Z a-z 0-9 . _ : -";
  throw invalidRequest([{ path: "runtime_session_hint", problem }]);
}

/** Undefined when sessions are not kept; then both fields are ignored without validation. */
export async function sessionOf(
  body: unknown,
  principal: Principal,
  store: SessionStore | undefined,
): Promise<Job["session"]> {
  if (store === undefined) return undefined;
  const fields = Object(body) as SessionFields;
  const hint = parseHint(fields);
  if (hint !== undefined) return { hint };
  const { session_id } = fields;
  if (!isId(session_id)) return {};
  const used = await storeCall(() => store.hintOf(namespaceOf(principal, { kind: "user" }), session_id));
  return used === undefined ? {} : { hint: used };
}
