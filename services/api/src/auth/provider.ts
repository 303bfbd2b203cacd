/**
 * How callers are authenticated in each mode. With LOCAL_MODE or SVC_AUTH_PROVIDER=none every request has one fixed principal, and
 * credential headers are ignored. Otherwise an access token or an API key is required. In no mode does any other header, path, query
 * or body field identify the caller.
 */
import type { IncomingMessage } from "node:http";
import { LOCAL_PRINCIPAL, type Principal } from "@svc/contracts";
import { type Config, ConfigError, isUnauthenticated, type Log } from "@svc/service-kit";
import { ApiKeys } from "./api-keys.ts";
import type { Caller, ClaimRules } from "./claims.ts";
import { credentialOf } from "./credential.ts";
import { KeyRing } from "./key-ring.ts";
import { TokenRefused } from "./refused.ts";
import { VerifiedTokens } from "./verified-tokens.ts";
import { verifyToken } from "./verifier.ts";

export interface Identity {
  principal: Principal;
  planId?: Caller["planId"];
  evidence?: Caller["evidence"];
}

export interface IdentityProvider {
  /** Throws TokenRefused for a request without valid credentials. */
  identify: (request: IncomingMessage) => Promise<Identity>;
  close: () => void;
}

/** Throws a ConfigError that lists every problem when credentials are required and cannot be verified. */
export async function createIdentityProvider(config: Config, log: Log): Promise<IdentityProvider> {
  if (isUnauthenticated(config)) return localIdentity;
  const file = config.SVC_API_KEYS_FILE;
  const [keys, apiKeys] = await bothOf(
    KeyRing.open(config, log),
    file === "" ? Promise.resolve(undefined) : ApiKeys.open(file, log),
  );
  const rules = claimRules(config);
  const now = () => Date.now() / 1000;
  const verified = new VerifiedTokens();
  return {
    identify: async (request) => {
      const credential = credentialOf(request.headersDistinct);
      if (credential.kind === "token") return verifyToken(credential.token, { keys, rules, verified, now });
      if (apiKeys === undefined) throw new TokenRefused("unknown_api_key", "SVC_API_KEYS_FILE is not set");
      return apiKeys.callerOf(credential.key);
    },
    close: () => {
      keys.close();
      apiKeys?.close();
    },
  };
}

/** Both, or one ConfigError with the problems of both. */
async function bothOf<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  const outcomes = await Promise.allSettled([one, other]);
  const reasons = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  const problems = reasons.flatMap((reason) => {
    if (!(reason instanceof ConfigError)) throw reason;
    return reason.problems;
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Promise.all([one, other]);
}

/** Every request has the same fixed principal. */
export const localIdentity: IdentityProvider = {
  identify: async () => ({ principal: LOCAL_PRINCIPAL }),
  close: () => undefined,
};

export function claimRules(config: Config): ClaimRules {
  return {
    issuer: config.SVC_JWT_ISSUER,
    audiences: config.SVC_JWT_AUDIENCE,
    skewSeconds: config.SVC_JWT_CLOCK_SKEW_SECONDS,
    maxTtlSeconds: config.SVC_JWT_MAX_TTL_SECONDS,
    fallbackTenant: (!config.SVC_TENANT_ISOLATION_STRICT && config.SVC_JWT_SINGLE_TENANT_ID) || undefined,
  };
}
