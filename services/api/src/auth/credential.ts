/**
 * Extracts the one credential from a request's headers: an access token or an API key. Pure; the input is untrusted. Lengths are
 * checked before anything else, so that a hostile header costs almost nothing. The two headers may carry the same API key. Two
 * different credentials are refused, because it is not clear who calls.
 */
import { API_KEY_CHARS, API_KEY_PREFIX, isApiKey } from "@svc/contracts";
import { bearerToken, MAX_TOKEN_CHARS } from "./bearer.ts";
import { TokenRefused } from "./refused.ts";

export type Credential = { kind: "token"; token: string } | { kind: "api key"; key: string };

/** Header values as received, not merged into one. */
export interface CredentialHeaders {
  authorization?: readonly string[] | undefined;
  "x-api-key"?: readonly string[] | undefined;
}

const BEARER_KEY = /^bearer +(svc_.*)$/i;

export function credentialOf({ authorization, "x-api-key": apiKey }: CredentialHeaders): Credential {
  const key = keyHeader(apiKey);
  if (key !== undefined && authorization === undefined) return { kind: "api key", key };
  const borne = authorizationHeader(authorization);
  if (key !== undefined && !(borne.kind === "api key" && borne.key === key)) {
    throw new TokenRefused("two_credentials", "Authorization and X-API-Key carry different credentials");
  }
  return borne;
}

function authorizationHeader(values: readonly string[] | undefined): Credential {
  const [value = "", ...others] = values ?? [];
  const key =
    others.length === 0 && value.length <= MAX_TOKEN_CHARS ? BEARER_KEY.exec(value)?.[1] : undefined;
  // A JWT begins with a base64url-encoded brace, so it never has the prefix of API keys.
  if (key?.startsWith(API_KEY_PREFIX) && !key.includes(".")) return { kind: "api key", key: checked(key) };
  return { kind: "token", token: bearerToken(values) };
}

/** An empty X-API-Key header counts as absent. */
function keyHeader(values: readonly string[] | undefined): string | undefined {
  const [value = "", ...others] = values ?? [];
  if (others.length > 0) throw new TokenRefused("malformed", "more than one X-API-Key header");
  return value === "" ? undefined : checked(value);
}

function checked(key: string): string {
  if (key.length > API_KEY_CHARS) throw new TokenRefused("malformed", "an API key that is too long");
  if (!isApiKey(key)) throw new TokenRefused("malformed", "no API key");
  return key;
}
