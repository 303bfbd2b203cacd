/** Why credentials were refused: only for the log and the metrics. The caller gets the same answer for every cause. */

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

  /** `cause`: a sentence that contains nothing from the credential except the id of its key. */
  constructor(reason: Refusal, cause: string) {
    super(cause);
    this.name = "TokenRefused";
    this.reason = reason;
  }
}
