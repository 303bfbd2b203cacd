/**
 * Guards routes that only our own components may call. The token is compared in constant time before the body is read;
 * config/internal-tokens.ts says which ones are taken.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { INTERNAL_TOKEN_HEADER, ServiceError } from "@svc/contracts";
import type { onRequestHookHandler } from "fastify";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** True when both texts are equal; takes the same time wherever they differ. */
export function equalSecrets(left: string, right: string): boolean {
  return timingSafeEqual(digest(left), digest(right));
}

export function requireInternalToken(tokens: readonly string[]): onRequestHookHandler {
  const expected = tokens.filter((token) => token !== "").map(digest);
  return (request, _reply, done) => {
    const given = request.headers[INTERNAL_TOKEN_HEADER];
    if (typeof given !== "string") return done(new ServiceError("unauthorized"));
    const shown = digest(given);
    // Each is compared, whichever fits.
    const fits = expected.map((one) => timingSafeEqual(shown, one));
    done(fits.includes(true) ? undefined : new ServiceError("unauthorized"));
  };
}
