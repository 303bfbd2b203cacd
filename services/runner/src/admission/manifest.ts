/**
 * Admits or refuses a worker's request, before anything else looks at it: who signed it, when, for what, and whether it was used before. Holds
 * public keys only and trusts nothing in the request.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  canonicalJson,
  checkBinding,
  checkScope,
  type ManifestClaims,
  ManifestRefused,
  NotCanonical,
  openManifest,
  parseVerifyingKeys,
  ReplayMemory,
  type RequestScope,
  type VerifyingKey,
} from "@svc/capabilities";
import {
  type ExecuteRequest,
  executeRequestSchema,
  GRANT_HEADER,
  hasContent,
  MANIFEST_HEADER,
  type ReferencedFile,
  type ResumeRequest,
  resumeRequestSchema,
  ServiceError,
} from "@svc/contracts";
import { type Config, type Log, parsedVariable, parseOrRefuse } from "@svc/service-kit";

/**
 * The second in which this process started, by the current clock: the clock may have been ahead at the start. This process does not know which
 * manifests an earlier one admitted, so it refuses all that were signed by then. The worker signs anew.
 */
const startedSecond = () => Math.floor((Date.now() - performance.now()) / 1000);

/** Far more than a runner can execute within the life of a manifest. */
const MAX_REMEMBERED = 200_000;

export interface Presented {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: unknown;
  requestId: string;
}

export interface Admitted {
  request: ExecuteRequest;
  /** The request's owner: the same text for all requests of a user, which does not reveal the user. */
  principal: string;
}

export class ManifestVerifier {
  readonly #keys: readonly VerifyingKey[];
  readonly #required: boolean;
  readonly #log: Log;
  readonly #used = new ReplayMemory(MAX_REMEMBERED);

  constructor(config: Config, log: Log) {
    this.#required = config.SANDBOX_REQUIRE_EGRESS_MANIFEST;
    this.#log = log;
    const name = "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY";
    this.#keys = config[name] === "" ? [] : parsedVariable(name, config, parseVerifyingKeys);
    if (!this.#required) log.warn("unsigned execute requests are accepted");
  }

  /** Resolves when manifests that are signed from now on are admitted: within a second of the start. */
  async opens(): Promise<void> {
    await sleep(Math.max(0, (startedSecond() + 1) * 1000 - Date.now()));
  }

  /** Admits an execute request that is authentic and well-formed. The result has the grant in the body, whichever way it came. */
  admit(presented: Presented): Admitted {
    const { claims, grant } = this.#authentic(presented);
    const request = { ...parseOrRefuse(executeRequestSchema, presented.body), egress_grant: grant };
    const { ptc } = request;
    const files = request.files.filter((file): file is ReferencedFile => !hasContent(file));
    const outputSession = request.output_session_id ?? request.session_id ?? undefined;
    this.#checkScope(presented, claims, { files, outputSession });
    if (ptc != null) this.#checkProgram(presented, claims, ptc.execution_id);
    // All unsigned requests count as one user's.
    return { request, principal: claims === undefined ? "" : `${claims.tenant_id} ${claims.user_id}` };
  }

  /** Admits a request that resumes a paused program, likewise. It fetches nothing. */
  admitResume(presented: Presented, executionId: string): ResumeRequest {
    const { claims, grant } = this.#authentic(presented);
    const request = { ...parseOrRefuse(resumeRequestSchema, presented.body), egress_grant: grant };
    this.#checkScope(presented, claims, { files: [], outputSession: request.output_session_id });
    for (const id of [executionId, request.ptc.execution_id]) this.#checkProgram(presented, claims, id);
    return request;
  }

  /** Admits a request that ends a program; it has no body and no grant. */
  admitDiscard(presented: Presented, executionId: string): void {
    const { claims } = this.#authentic(presented);
    this.#checkProgram(presented, claims, executionId);
  }

  #authentic(presented: Presented): { claims: ManifestClaims | undefined; grant: string | undefined } {
    const { headers, body } = presented;
    const manifest = eitherForm(headers, MANIFEST_HEADER, body, "execution_manifest", () =>
      refused("malformed"),
    );
    if (manifest === undefined && this.#required) throw new ServiceError("manifest_missing");
    const grant = eitherForm(headers, GRANT_HEADER, body, "egress_grant", twoGrants);
    const claims = manifest === undefined ? undefined : this.#claimsOf(manifest, grant ?? "", presented);
    return { claims, grant };
  }

  #checkScope(presented: Presented, claims: ManifestClaims | undefined, scope: RequestScope): void {
    if (claims !== undefined) this.#orRefuse(presented, () => checkScope(claims, scope));
  }

  /** Only the execution that the manifest names may use tools. */
  #checkProgram(presented: Presented, claims: ManifestClaims | undefined, executionId: string): void {
    if (claims === undefined || (claims.tool_call_socket && claims.exec_id === executionId)) return;
    this.#orRefuse(presented, () => {
      throw new ManifestRefused("scope_mismatch");
    });
  }

  #claimsOf(manifest: string, grant: string, presented: Presented): ManifestClaims {
    if (this.#keys.length === 0) throw new ServiceError("manifest_key_missing");
    const now = Math.floor(Date.now() / 1000);
    return this.#orRefuse(presented, () => {
      const { claims, lastSecond } = openManifest(this.#keys, manifest, now);
      const { jti, iat, nbf, exp } = claims;
      if (iat <= startedSecond()) throw this.#signedBeforeStart(presented.requestId, iat);
      if (nbf > now || exp < now) {
        const times = { request_id: presented.requestId, nbf, exp, now };
        this.#log.warn(times, "manifest accepted within the clock tolerance");
      }
      const use = this.#used.use(jti, lastSecond, now, Math.floor(performance.now() / 1000));
      if (use === "full") throw new ServiceError("runner_busy");
      if (use === "used") throw new ManifestRefused("replayed");
      checkBinding(claims, { body: boundText(presented.body), grant });
      return claims;
    });
  }

  #signedBeforeStart(request_id: string, iat: number): ServiceError {
    this.#log.info(
      { request_id, iat, started: startedSecond() },
      "manifest refused: signed before this runner started",
    );
    return new ServiceError("starting_up", "The execution manifest was signed before this runner started.");
  }

  #orRefuse<T>({ requestId }: Presented, check: () => T): T {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ManifestRefused)) throw error;
      const now = new Date().toISOString();
      this.#log.warn({ request_id: requestId, reason: error.reason, now }, "manifest refused");
      throw refused(error.reason);
    }
  }
}

/** Whether the error is a refusal because of the manifest. */
export function isManifestError(error: unknown): boolean {
  return error instanceof ServiceError && error.code.startsWith("manifest_");
}

const twoGrants = () =>
  new ServiceError("invalid_request", "egress_grant: must be one text, the same in header and body.");

function refused(reason: ManifestRefused["reason"]): ServiceError {
  if (reason === "malformed") return new ServiceError("manifest_malformed");
  return new ServiceError("manifest_refused", `The execution manifest was refused: ${reason}.`, {
    extra: { reason },
  });
}

/** A text that may be given in a header, in the body, or equal in both. Null counts as absent. */
function eitherForm(
  headers: Presented["headers"],
  header: string,
  body: unknown,
  field: string,
  problem: () => ServiceError,
): string | undefined {
  const given = [headers[header], (body as Record<string, unknown> | null)?.[field]].filter(
    (value) => value !== undefined && value !== null,
  );
  if (given.some((value) => typeof value !== "string" || value !== given[0])) throw problem();
  return given[0] as string | undefined;
}

/** The text that the body's hash covers. A body without a canonical text was not signed. */
function boundText(body: unknown): string {
  const { execution_manifest: _m, egress_grant: _g, ...rest } = Object(body) as Record<string, unknown>;
  try {
    return canonicalJson(rest);
  } catch (error) {
    if (error instanceof NotCanonical) throw new ManifestRefused("body_mismatch");
    throw error;
  }
}
