/** Why a caller is not who he says: for the log and the metrics alone. Every cause gives the caller the same answer. */

export const REFUSALS = [
  "missing",
  "malformed",
  "unknown_key",
  "wrong_algorithm",
  "bad_signature",
  "bad_claims",
  "expired",
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
