/** Guards routes that only our own components may call. The token is compared in constant time before the body is read. */
import { createHash, timingSafeEqual } from "node:crypto";
import { INTERNAL_TOKEN_HEADER, ServiceError } from "@svc/contracts";
import type { onRequestHookHandler } from "fastify";

const digest = (text: string) => createHash("sha256").update(text).digest();

/** True when both texts are equal; takes the same time wherever they differ. */
export function equalSecrets(left: string, right: string): boolean {
  return timingSafeEqual(digest(left), digest(right));
}

export function requireInternalToken(token: string): onRequestHookHandler {
  const expected = digest(token);
  return (request, _reply, done) => {
    const given = request.headers[INTERNAL_TOKEN_HEADER];
    if (token !== "" && typeof given === "string" && timingSafeEqual(digest(given), expected)) return done();
    done(new ServiceError("unauthorized"));
  };
}
