/** Maps refused tokens and refusals of the ledger to error answers. */
import { type LedgerRefusal, type RefusalReason, TokenRefused } from "@svc/capabilities";
import { ServiceError } from "@svc/contracts";

const STATUS: Record<RefusalReason, number> = {
  missing_secret: 500,
  weak_secret: 500,
  malformed: 400,
  expired: 401,
  wrong_type: 403,
  scope_mismatch: 403,
};

/** Runs a token check; its refusal becomes `egress_grant_refused`. */
export function refusals<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error;
    throw new ServiceError("egress_grant_refused", undefined, {
      status: STATUS[error.reason],
      extra: { reason: error.reason },
    });
  }
}

export function ledgerRefused(refusal: LedgerRefusal): ServiceError {
  return new ServiceError("egress_ledger_refused", undefined, {
    status: refusal === "expired" ? 401 : 403,
    extra: { ledger_reason: refusal },
  });
}
