/**
 * The body of a request to the runner, which includes its grant and the manifest that signs
 * it. Each call signs anew. `toolSocket`: the program may call tools.
 */
import { canonicalJson, type SigningKey, signManifest } from "@svc/capabilities";
import type { RegisteredGrant } from "@svc/contracts";

export type SignRequest = (
  request: object,
  grant: RegisteredGrant,
  allowed?: { toolSocket: boolean },
) => string;

export function requestSigner(key: SigningKey, ttlSeconds: number): SignRequest {
  return (request, { egressGrantToken, executionManifestClaims }, { toolSocket } = { toolSocket: false }) => {
    const body = canonicalJson(request);
    const manifest = signManifest(
      key,
      executionManifestClaims,
      { body, grant: egressGrantToken },
      { now: Math.floor(Date.now() / 1000), ttl: ttlSeconds, toolSocket },
    );
    const added = JSON.stringify({ egress_grant: egressGrantToken, execution_manifest: manifest });
    // The canonical text is already the body, except for its closing brace.
    return `${body.slice(0, -1)},${added.slice(1)}`;
  };
}
