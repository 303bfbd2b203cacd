/** Why a caller's credentials were refused: for the log and the metrics alone. Every cause gives the caller the same answer. */

export const REFUSALS = [
  "missing",
  "malformed",
  "two_credentials",
  "unknown_key",
  "unknown_api_key",
  "wrong_algorithm",
  "bad_signature",
  "bad_claims",
  "expired",
  "revoked",
  "no_tenant",
] as const;
export type Refusal = (typeof REFUSALS)[number];

export class TokenRefused extends Error {
  readonly reason: Refusal;

  /** `cause`: a sentence that holds nothing of the credential but the id of its key. */
  constructor(reason: Refusal, cause: string) {
    super(cause);
    this.name = "TokenRefused";
    this.reason = reason;
  }
}
