/** Extracts the one access token from a request's headers. Pure; the input is untrusted. */
import { TokenRefused } from "./refused.ts";

/** Longer tokens are refused unread. */
export const MAX_TOKEN_CHARS = 8192;

const CARRIER = /^bearer +([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i;

/** `values`: all Authorization headers, not merged into one. */
export function bearerToken(values: readonly string[] | undefined): string {
  const [value, ...others] = values ?? [];
  if (value === undefined) throw new TokenRefused("missing", "no Authorization header");
  if (others.length > 0) throw new TokenRefused("malformed", "more than one Authorization header");
  if (value.length > MAX_TOKEN_CHARS) throw new TokenRefused("malformed", "a token that is too long");
  const token = CARRIER.exec(value)?.[1];
  if (token === undefined) throw new TokenRefused("malformed", "no bearer token");
  return token;
}
