/** Makes an API key and its record. The key is only in the return value and stored nowhere. */
import { randomBytes } from "node:crypto";
import {
  API_KEY_PREFIX,
  type ApiKeyRecord,
  apiKeyDigest,
  apiKeyName,
  planId,
  principalId,
} from "@svc/contracts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";

export interface KeyRequest {
  name: string;
  tenant: string;
  user: string;
  plan?: string | undefined;
  /** As on a command line, such as 90d. */
  expires?: string | undefined;
}

export function newApiKey(request: KeyRequest, now: Date): { key: string; record: ApiKeyRecord } {
  const { name, tenant, user, plan, expires } = request;
  demand("NAME", "1 to 100 characters without control characters", apiKeyName.safeParse(name).success);
  demand("--tenant", "1 to 256 characters", principalId.safeParse(tenant).success);
  demand("--user", "1 to 256 characters", principalId.safeParse(user).success);
  demand("--plan", "1 to 256 characters", plan === undefined || planId.safeParse(plan).success);
  const key = API_KEY_PREFIX + randomBytes(32).toString("base64url");
  const record: ApiKeyRecord = {
    id: randomBytes(6).toString("hex"),
    name,
    sha256: apiKeyDigest(key),
    tenant,
    user,
    ...(plan === undefined ? {} : { plan }),
    created_at: now.toISOString(),
    ...(expires === undefined ? {} : { expires_at: new Date(now.getTime() + lifeOf(expires)).toISOString() }),
  };
  return { key, record };
}

function demand(what: string, rule: string, holds: boolean): void {
  if (!holds) throw new Problem(`${what} must have ${rule}`, undefined, USAGE_EXIT_CODE);
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
const MAX_LIFE_MS = 3660 * UNIT_MS.d;

/** Milliseconds of a text such as 90d, 12h, 30m or 2w. */
export function lifeOf(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  const life = Number(count) * (UNIT_MS[unit as keyof typeof UNIT_MS] ?? 0);
  if (life > 0 && life <= MAX_LIFE_MS) return life;
  throw new Problem(
    `--expires must be a time such as 90d, 12h, 30m or 2w, at most ten years, not ${JSON.stringify(text)}`,
    undefined,
    USAGE_EXIT_CODE,
  );
}
