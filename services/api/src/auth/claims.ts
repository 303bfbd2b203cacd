/**
 * Checks the claims of an access token. Pure. The signer of the token is trusted to name its users. The claims are validated
 * nevertheless, because ids become parts of storage namespaces and of internal headers.
 */
import { principalId as id, MAX_PRINCIPAL_ID_CHARS as MAX_ID_CHARS, type Principal } from "@svc/contracts";
import { z } from "zod";
import { TokenRefused } from "./refused.ts";

export interface ClaimRules {
  issuer: string;
  audiences: readonly string[];
  skewSeconds: number;
  maxTtlSeconds: number;
  /** Tenant for tokens without a tenant; undefined: such tokens are refused. */
  fallbackTenant: string | undefined;
}

export interface Caller {
  principal: Principal;
  /** The plan that sets the caller's limits. It has no influence on which files the caller may access. */
  planId?: string | undefined;
  /** For logs only; never used for a decision. */
  evidence: Readonly<Record<string, string>>;
}

const claimsSchema = z.object({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  sub: id,
  jti: z.string().min(1).max(MAX_ID_CHARS),
  iat: z.number(),
  nbf: z.number(),
  exp: z.number(),
  principal_source: z.enum(["librechat_jwt", "openid_reuse"]),
  auth_context_hash: z.string().min(1),
  tenant_id: id.nullish(),
  plan_id: z.string().max(MAX_ID_CHARS).nullish(),
});

/** Throws TokenRefused for the first broken rule. */
export function callerOf(payload: unknown, rules: ClaimRules, nowSeconds: number): Caller {
  const result = claimsSchema.safeParse(payload);
  if (!result.success) {
    const names = new Set(result.error.issues.map(({ path }) => String(path[0] ?? "payload")));
    throw new TokenRefused("bad_claims", `claim missing or wrong: ${[...names].join(", ")}`);
  }
  const claims = result.data;
  if (claims.iss !== rules.issuer) throw new TokenRefused("bad_claims", "another issuer");
  if (![claims.aud].flat().some((audience) => rules.audiences.includes(audience))) {
    throw new TokenRefused("bad_claims", "another audience");
  }
  checkTimes(claims, rules, nowSeconds);
  const tenantId = claims.tenant_id ?? rules.fallbackTenant;
  if (tenantId === undefined) throw new TokenRefused("no_tenant", "no tenant");
  const { jti, principal_source, auth_context_hash } = claims;
  return {
    principal: { tenantId, userId: claims.sub },
    planId: claims.plan_id ?? undefined,
    evidence: { jti, principal_source, auth_context_hash },
  };
}

interface Times {
  iat: number;
  nbf: number;
  exp: number;
}

function checkTimes({ iat, nbf, exp }: Times, { skewSeconds, maxTtlSeconds }: ClaimRules, now: number): void {
  if (exp <= iat) throw new TokenRefused("bad_claims", "expires before it was issued");
  if (exp - iat > maxTtlSeconds) throw new TokenRefused("bad_claims", "lives too long");
  if (now >= exp + skewSeconds) throw new TokenRefused("expired", "expired");
  if (now < nbf - skewSeconds) throw new TokenRefused("bad_claims", "not valid yet");
  if (now < iat - skewSeconds) throw new TokenRefused("bad_claims", "issued in the future");
}
