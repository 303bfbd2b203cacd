/** Which persistent session a run continues: the one of its hint, else the one that an earlier execution used, else the default one. */
import { isId, type Job, namespaceOf, type Principal, sessionHintSchema } from "@svc/contracts";
import { invalidRequest, storeCall } from "@svc/service-kit";
import type { SessionStore } from "@svc/session-store";

interface SessionFields {
  runtime_session_hint?: unknown;
  session_id?: unknown;
}

/** The hint of a request; a wrong one is refused. */
function parseHint({ runtime_session_hint: hint }: SessionFields): string | undefined {
  if (hint === undefined || hint === null) return undefined;
  const parsed = sessionHintSchema.safeParse(hint);
  if (parsed.success) return parsed.data;
  const problem = "must have 1 to 128 of A-Z a-z 0-9 . _ : -";
  throw invalidRequest([{ path: "runtime_session_hint", problem }]);
}

/** Undefined where sessions are not kept: then both fields are ignored unread. */
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
