/** The settings of both sides for LibreChat, as lines to copy. Pure. */
import type { KeyObject } from "node:crypto";

export interface SignedSettings {
  /** The address at which LibreChat reaches the API, with /v1. */
  baseUrl: string;
  kid: string;
  privateKey: KeyObject;
  issuer: string;
  audience: string;
  tenant: string;
  /** Life of each token. */
  ttlSeconds: number;
  publicKeys: string;
}

/** LibreChat signs a token for each user. */
export function signedSettings(settings: SignedSettings): { libreChat: string[]; svc: string[] } {
  const { baseUrl, kid, privateKey, issuer, audience, tenant, ttlSeconds, publicKeys } = settings;
  const pem = (privateKey.export({ type: "pkcs8", format: "pem" }) as string).trim().replaceAll("\n", "\\n");
  return {
    libreChat: [
      `LIBRECHAT_CODE_BASEURL=${baseUrl}`,
      "CODEAPI_AUTH_PROVIDER=librechat-jwt",
      `CODEAPI_JWT_PRIVATE_KEY="${pem}"`,
      `CODEAPI_JWT_KID=${kid}`,
      `CODEAPI_JWT_ISSUER=${issuer}`,
      `CODEAPI_JWT_AUDIENCE=${audience}`,
      `CODEAPI_JWT_TTL_SECONDS=${ttlSeconds}`,
      `CODEAPI_JWT_SINGLE_TENANT_ID=${tenant}`,
    ],
    svc: [`SVC_JWT_PUBLIC_KEYS_DIR=${publicKeys}`],
  };
}

/** LibreChat sends one key for all users. */
export function sharedSettings({ baseUrl, key, file }: { baseUrl: string; key: string; file: string }) {
  return {
    libreChat: [`LIBRECHAT_CODE_BASEURL=${baseUrl}`, `LIBRECHAT_CODE_API_KEY=${key}`],
    svc: [`SVC_API_KEYS_FILE=${file}`],
  };
}

const YAML = [
  "# Only when the file names capabilities of agents at all: without this list the capability is on.",
  "endpoints:",
  "  agents:",
  "    capabilities:",
  "      - execute_code   # and the others that you use",
];

export function shownSettings(
  { libreChat, svc }: { libreChat: string[]; svc: string[] },
  settingsFile: string,
): string {
  const block = (title: string, lines: readonly string[]) => [`# ${title}`, ...lines, ""];
  return [
    ...block("1. .env of LibreChat", libreChat),
    ...block(`2. ${settingsFile}, or the environment of ./svc up`, svc),
    ...block("3. librechat.yaml", YAML),
  ].join("\n");
}
