/** Makes an access token in the form that LibreChat signs and the API accepts (docs/authentication.md). Pure except for the clock. */
import { createHash, type KeyObject, randomUUID, sign } from "node:crypto";
import { type Environment, settingOf } from "../settings.ts";

export interface TokenRequest {
  kid: string;
  privateKey: KeyObject;
  tenant: string;
  user: string;
  ttlSeconds: number;
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** `env`: the settings of the copy, which name the issuer and the audience. */
export function accessToken({ kid, privateKey, tenant, user, ttlSeconds }: TokenRequest, env: Environment) {
  const { issuer, audience } = partiesOf(env);
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer,
    aud: audience,
    sub: user,
    tenant_id: tenant,
    jti: randomUUID(),
    iat: now,
    nbf: now,
    exp: now + ttlSeconds,
    role: "USER",
    principal_source: "librechat_jwt",
    auth_context_hash: createHash("sha256")
      .update(JSON.stringify([tenant, user]))
      .digest("hex"),
  };
  const input = `${part({ alg: "EdDSA", typ: "JWT", kid })}.${part(claims)}`;
  return `${input}.${sign(null, Buffer.from(input), privateKey).toString("base64url")}`;
}

export function partiesOf(env: Environment): { issuer: string; audience: string } {
  const [audience = ""] = settingOf("SVC_JWT_AUDIENCE", env);
  return { issuer: settingOf("SVC_JWT_ISSUER", env), audience };
}
