/**
 * How LibreChat proves who calls, by the lines of its .env: a token that it signs for each user, in the form of its
 * packages/api/src/auth/codeapi.ts, or the one key of all users.
 */
import { createHash, createPrivateKey } from "node:crypto";
import { signerOf } from "@svc/test-kit/credentials/signer";

export type Headers = Readonly<Record<string, string>>;
export type DotEnv = Readonly<Record<string, string | undefined>>;

export interface LibreChat {
  baseUrl: string;
  /** Made anew for each request. */
  headers: (user: string) => Headers;
}

/** `env`: the settings in .env. */
export function libreChat(env: DotEnv): LibreChat {
  const baseUrl = env.LIBRECHAT_CODE_BASEURL ?? "";
  const key = env.LIBRECHAT_CODE_API_KEY;
  if (key !== undefined) return { baseUrl, headers: () => ({ "X-API-Key": key }) };
  return { baseUrl, headers: (user) => signed(env, user) };
}

/** As LibreChat signs, with its defaults. `claims` over them. */
export function signed(env: DotEnv, user: string, claims: Readonly<Record<string, unknown>> = {}): Headers {
  if (env.CODEAPI_AUTH_PROVIDER !== "librechat-jwt" && env.CODEAPI_JWT_ENABLED !== "true") return {};
  const signer = signerOf(
    createPrivateKey((env.CODEAPI_JWT_PRIVATE_KEY ?? "").replaceAll("\\n", "\n").trim()),
  );
  const tenant_id = env.CODEAPI_JWT_SINGLE_TENANT_ID?.trim() || "legacy";
  const now = Math.floor(Date.now() / 1000);
  const who = { role: "USER", principal_source: "librechat_jwt", sub: user, tenant_id };
  const token = signer.mint({
    header: { kid: env.CODEAPI_JWT_KID ?? "lc-codeapi-2026-05" },
    claims: {
      iss: env.CODEAPI_JWT_ISSUER ?? "librechat",
      aud: env.CODEAPI_JWT_AUDIENCE ?? "codeapi",
      iat: now,
      nbf: now,
      exp: now + Number(env.CODEAPI_JWT_TTL_SECONDS ?? 300),
      ...who,
      auth_context_hash: contextHash(who),
      ...claims,
    },
  });
  return { Authorization: `Bearer ${token}` };
}

function contextHash(who: Readonly<Record<string, string>>): string {
  const all = { chc_user_id: "", org_id: "", service_id: "", ...who };
  const sorted = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
}
