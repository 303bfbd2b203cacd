/**
 * Decides what a call may do: opens grants and handles, asks the ledger, registers and revokes grants. Order of checks:
 * token, ledger record, ids, status, expiry, scope. Fails closed: without Redis nothing is let through.
 */
import {
  type Grant,
  HandleBook,
  issueGrant,
  Ledger,
  ledgerVerdict,
  type ObjectHandle,
  openGrant,
  openObject,
  openSession,
  type RefusalReason,
  type SealKeys,
  type SessionHandle,
  sealGrant,
  sealKeys,
  sealObject,
  TokenRefused,
} from "@svc/capabilities";
import {
  GRANT_HEADER,
  type GrantClaims,
  type MaskablePayload,
  newId,
  type RegisteredGrant,
  ServiceError,
} from "@svc/contracts";
import { type Config, invalidRequest, type Redis, storeCall } from "@svc/service-kit";

const STATUS: Record<RefusalReason, number> = {
  missing_secret: 500,
  weak_secret: 500,
  malformed: 400,
  expired: 401,
  wrong_type: 403,
  scope_mismatch: 403,
};

const nowSeconds = () => Math.floor(Date.now() / 1000);

export class Authority {
  readonly #keys: SealKeys;
  readonly #ledger: Ledger;
  readonly #ledgerRequired: boolean;
  readonly #maxLifetime: number;

  constructor(config: Config, redis: Redis) {
    this.#keys = sealKeys(config.SVC_EGRESS_GRANT_SECRET, config.SVC_EGRESS_GRANT_SECRET_PREVIOUS);
    this.#ledger = new Ledger(redis, config.SVC_EGRESS_LEDGER_TTL_GRACE_SECONDS);
    this.#ledgerRequired = config.SVC_EGRESS_LEDGER_REQUIRED;
    this.#maxLifetime = config.EGRESS_GRANT_TTL_SECONDS;
  }

  /** Makes a grant, records it, and masks the payload: real ids become handles, the session id a random label. */
  async register(payload: MaskablePayload, claims: GrantClaims): Promise<RegisteredGrant> {
    checkConsistent(payload, claims);
    const now = nowSeconds();
    const grant = issueGrant(claims, now, this.#maxLifetime);
    await storeCall(() => this.#ledger.register(grant, now));
    const handles = new HandleBook(this.#keys, grant);
    return {
      grant_id: grant.grant_id,
      egressGrantToken: sealGrant(this.#keys, grant),
      executionManifestClaims: handles.manifestScope(),
      payload: {
        session_id: newId(),
        output_session_id: handles.output,
        files: payload.files.map(({ name, id, storage_session_id }) => ({
          name,
          id: handles.object(storage_session_id, id, name),
          storage_session_id: handles.session(storage_session_id),
        })),
      },
    };
  }

  async revoke(grantId: string, reason: string): Promise<void> {
    await storeCall(() => this.#ledger.revoke(grantId, reason, nowSeconds()));
  }

  /** The grant of a sandbox-facing call, checked against the ledger. */
  async grantOf(headers: Record<string, unknown>): Promise<Grant> {
    const grant = refusals(() => openGrant(this.#keys, headers[GRANT_HEADER], nowSeconds()));
    const record = await storeCall(() => this.#ledger.find(grant.grant_id));
    const refusal = ledgerVerdict(record, grant, this.#ledgerRequired, nowSeconds());
    if (refusal !== undefined) {
      throw new ServiceError("egress_ledger_refused", undefined, {
        status: refusal === "expired" ? 401 : 403,
        extra: { ledger_reason: refusal },
      });
    }
    return grant;
  }

  session(grant: Grant, handle: string, dir: "read" | "write"): SessionHandle {
    return refusals(() => openSession(this.#keys, grant, handle, dir, nowSeconds()));
  }

  object(grant: Grant, session: SessionHandle, handle: string): ObjectHandle {
    return refusals(() => openObject(this.#keys, grant, session, handle, nowSeconds()));
  }

  objectHandle(grant: Grant, sessionId: string, objectId: string, name: string): string {
    return sealObject(this.#keys, grant, sessionId, objectId, name);
  }
}

function refusals<T>(check: () => T): T {
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

/** The payload may name only what the claims enumerate. */
function checkConsistent(payload: MaskablePayload, claims: GrantClaims): void {
  const enumerated = new Set(claims.input_files.map((file) => `${file.session_id}/${file.id}`));
  const sessions = new Set(claims.read_sessions);
  const details = [
    ...claims.input_files.flatMap((file, index) =>
      sessions.has(file.session_id)
        ? []
        : [{ path: `claims.input_files[${index}]`, problem: "its session is not among read_sessions" }],
    ),
    ...payload.files.flatMap((file, index) =>
      enumerated.has(`${file.storage_session_id}/${file.id}`)
        ? []
        : [{ path: `payload.files[${index}]`, problem: "is not among the claims' input_files" }],
    ),
    ...(payload.output_session_id === claims.output_session_id
      ? []
      : [{ path: "payload.output_session_id", problem: "is not the claims' output session" }]),
  ];
  if (details.length > 0) throw invalidRequest(details);
}
