/**
 * Guards routes that only our own components may call. Compares the token in constant time, before the body is read.
 * config/internal-tokens.ts decides which tokens are accepted.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { INTERNAL_TOKEN_HEADER, ServiceError } from "@svc/contracts";
import type { onRequestHookHandler } from "fastify";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** Whether both texts are equal. The time does not depend on where they differ. */
export function equalSecrets(left: string, right: string): boolean {
  return timingSafeEqual(digest(left), digest(right));
}

export function requireInternalToken(tokens: readonly string[]): onRequestHookHandler {
  const expected = tokens.filter((token) => token !== "").map(digest);
  return (request, _reply, done) => {
    const given = request.headers[INTERNAL_TOKEN_HEADER];
    if (typeof given !== "string") return done(new ServiceError("unauthorized"));
    const shown = digest(given);
    // Compare all of them, so that the time does not tell which one fits.
    const fits = expected.map((one) => timingSafeEqual(shown, one));
    done(fits.includes(true) ? undefined : new ServiceError("unauthorized"));
  };
}
