/** The service with callers who prove who they are as LibreChat's users do, for tests: by access tokens. */
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type Service, startService } from "@svc/test-kit/system/service";

export interface TokenService extends Service {
  /** An access token of this user, as LibreChat mints one for each call of its tools. */
  token: (user: string, claims?: Readonly<Record<string, unknown>>) => string;
}

export async function startTokenService(env: Readonly<Record<string, string>>): Promise<TokenService> {
  const signer = newSigner();
  // On one line, as a file of settings takes it.
  const key = signer.pem.replaceAll(/-----.*-----|\n/g, "");
  const service = await startService({ ...env, SVC_JWT_PUBLIC_KEY: key, SVC_JWT_KID: KID });
  return { ...service, token: (user, claims) => signer.mint({ claims: { sub: user, ...claims } }) };
}
