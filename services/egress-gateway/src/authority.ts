/**
 * Issues and ends grants: registers them in the ledger, masks payloads, revokes, and records what a worker reports. Opens and makes the handles
 * of a grant. Only the internal routes issue grants, end them or report.
 */
import {
  type Grant,
  HandleIndex,
  issueGrant,
  type Ledger,
  type ObjectHandle,
  openObject,
  openSession,
  type RestoreOutcome,
  revoke,
  type SealKeys,
  type SessionHandle,
  sealGrant,
  sealObject,
} from "@svc/capabilities";
import {
  type EndedGrant,
  type GrantClaims,
  type MaskablePayload,
  newId,
  type PrefetchRequest,
  type RegisteredGrant,
} from "@svc/contracts";
import { invalidRequest, storeCall } from "@svc/service-kit";
import { ledgerRefused, refusals } from "./refusals.ts";

export const nowSeconds = () => Math.floor(Date.now() / 1000);

export class Authority {
  readonly #keys: SealKeys;
  readonly #ledger: Ledger;
  readonly #maxLifetime: number;

  constructor(keys: SealKeys, ledger: Ledger, maxLifetime: number) {
    this.#keys = keys;
    this.#ledger = ledger;
    this.#maxLifetime = maxLifetime;
  }

  /**
   * Issues a grant, records it, and masks the payload: real ids become handles, and the session id becomes a random label. Nothing is returned
   * before the grant is recorded.
   */
  async register(payload: MaskablePayload, claims: GrantClaims): Promise<RegisteredGrant> {
    checkConsistent(payload, claims);
    const now = nowSeconds();
    const grant = issueGrant(claims, now, this.#maxLifetime);
    // In this order: the request to Redis is under way while the handles are made.
    const [, masked] = await Promise.all([
      storeCall(() => this.#ledger.register(grant, now)),
      this.#masked(payload.files, grant),
    ]);
    return masked;
  }

  /** Issues and records grants for runs without inputs. None is returned before all are recorded. */
  async prefetch({ claims, runs }: Pick<PrefetchRequest, "claims" | "runs">): Promise<RegisteredGrant[]> {
    const now = nowSeconds();
    const grants = runs.map((run) =>
      issueGrant({ ...claims, ...run, input_files: [], read_sessions: [] }, now, this.#maxLifetime),
    );
    const [, masked] = await Promise.all([
      storeCall(() => this.#ledger.registerAll(grants, now)),
      Promise.all(grants.map((grant) => this.#masked([], grant))),
    ]);
    return masked;
  }

  async #masked(files: MaskablePayload["files"], grant: Grant): Promise<RegisteredGrant> {
    const handles = new HandleIndex(this.#keys, grant);
    return {
      grant_id: grant.grant_id,
      egressGrantToken: sealGrant(this.#keys, grant),
      executionManifestClaims: handles.manifestScope(),
      payload: {
        session_id: newId(),
        output_session_id: handles.output,
        files: files.map(({ name, id, storage_session_id }) => ({
          name,
          id: handles.object(storage_session_id, id, name),
          storage_session_id: handles.session(storage_session_id),
          copy_key: handles.copyKey(storage_session_id, id),
        })),
      },
    };
  }

  async revokeAll(ends: readonly EndedGrant[]): Promise<void> {
    await Promise.all(ends.map(({ grant_id, reason }) => this.revoke(grant_id, reason)));
  }

  /** Revokes a grant for good. Unknown and revoked grants are no error. */
  async revoke(grantId: string, reason: string): Promise<void> {
    await storeCall(() =>
      this.#ledger.change(grantId, (record) => record && revoke(record, reason, Date.now())),
    );
  }

  /** Records whether the session's state was restored. The grant may already be revoked. */
  async recordRestore(grantId: string, outcome: RestoreOutcome): Promise<void> {
    await storeCall(() =>
      this.#ledger.change(grantId, (record) => {
        if (record === undefined) throw ledgerRefused("missing");
        return { ...record, restore_outcome: outcome };
      }),
    );
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
