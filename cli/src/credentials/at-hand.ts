/** Tells how to call a copy that demands credentials from the shell in which it was started. Makes no credential. */
import { resolve } from "node:path";
import type { Instance } from "../instance.ts";
import type { Mode } from "../mode.ts";
import { type Environment, settingOf } from "../settings.ts";
import { svcLine } from "../svc-line.ts";
import { accessToken } from "./access-token.ts";
import { publishedKeyPair } from "./key-pair.ts";
import { defaultTenant, publicKeysFolder } from "./place.ts";

const EXAMPLE_USER = "example";

export interface AtHand {
  /** The shell words that stand for the credential in a printed command; undefined when none is needed. */
  words: string | undefined;
  /** Explains a part of `words` that the reader must fill in. */
  note?: string;
  /** Makes a credential from a key that exists already; undefined when there is no such key, or no credential is needed. */
  mint: (() => string) | undefined;
}

export function credentialAtHand(
  instance: Instance,
  mode: Pick<Mode, "isAuthenticated">,
  env: Environment,
): AtHand {
  if (!mode.isAuthenticated) return { words: undefined, mint: undefined };
  if (trustsOwnSigner(instance, env)) {
    const pair = publishedKeyPair(instance);
    const request = { tenant: defaultTenant(env), user: EXAMPLE_USER };
    const ttlSeconds = settingOf("SVC_JWT_MAX_TTL_SECONDS", env);
    return {
      words: `$(${svcLine(`token --user ${EXAMPLE_USER}`)})`,
      mint: pair && (() => accessToken({ ...pair, ...request, ttlSeconds }, env)),
    };
  }
  if (env.SVC_API_KEYS_FILE) {
    return { words: `$(${svcLine("key add try --expires 1h")})`, mint: undefined };
  }
  return {
    words: "$TOKEN",
    note: "TOKEN is an access token of your own signer (docs/authentication.md).",
    mint: undefined,
  };
}

/** Whether the API trusts the folder in which this copy publishes the public keys of its own signers. */
function trustsOwnSigner(instance: Instance, env: Environment): boolean {
  const folder = env.SVC_JWT_PUBLIC_KEYS_DIR;
  if (!folder || resolve(folder) !== publicKeysFolder(instance)) return false;
  return settingOf("SVC_JWT_ALLOWED_ALGS", env).includes("EdDSA");
}
