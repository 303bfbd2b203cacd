/**
 * Secrets of a local copy: made once, kept in <data>/secrets.env with mode 0600, then read back. Only the supervisor makes
 * them, under its lock. A value in the caller's environment overrides the file.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { PAIR_TOKENS } from "@svc/service-kit/config/internal-tokens";
import { Problem } from "./problem.ts";
import { replaceFile } from "./system/replace-file.ts";

const TOKEN_OF_ALL = "SVC_INTERNAL_SERVICE_TOKEN";
const PAIRS = Object.keys(PAIR_TOKENS) as (keyof typeof PAIR_TOKENS)[];
const RANDOM = [TOKEN_OF_ALL, ...PAIRS, "SVC_EGRESS_GRANT_SECRET", "SVC_CONTINUATION_SECRET"] as const;
const PRIVATE_KEY = "SVC_EXECUTION_MANIFEST_PRIVATE_KEY";
const PUBLIC_KEY = "SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY";

export const SECRET_NAMES = [...RANDOM, PRIVATE_KEY, PUBLIC_KEY] as const;
export type SecretName = (typeof SECRET_NAMES)[number];
export type Secrets = Record<SecretName, string>;

const SECRET_BYTES = 32;

export function loadSecrets(dataDir: string): Secrets {
  const { path, stored, secrets } = read(dataDir);
  if (SECRET_NAMES.some((name) => stored[name] === undefined)) {
    const lines = SECRET_NAMES.map((name) => `${name}=${secrets[name]}\n`);
    replaceFile(path, lines.join(""), { mode: 0o600 });
  }
  return secrets;
}

/**
 * The secrets that the components get: a token for each pair of components that talk to each other, or the common token that
 * the operator set. The generated common token is only given to a process that holds all secrets anyway.
 */
export function givenSecrets(
  secrets: Secrets,
  isOneProcess: boolean,
  caller: Readonly<Record<string, string | undefined>>,
): Partial<Secrets> {
  const given: Partial<Secrets> = { ...secrets };
  if (caller[TOKEN_OF_ALL]) for (const name of PAIRS) delete given[name];
  else if (!isOneProcess) delete given[TOKEN_OF_ALL];
  return given;
}

/** The secrets of the file, with random ones for those that are missing. For checks before anything is made. */
export function secretsToCheck(dataDir: string): Secrets {
  try {
    return read(dataDir).secrets;
  } catch (error) {
    // The file belongs to root.
    if ((error as NodeJS.ErrnoException).code === "EACCES") return fresh({});
    throw error;
  }
}

function read(dataDir: string): { path: string; stored: Partial<Secrets>; secrets: Secrets } {
  const path = join(dataDir, "secrets.env");
  const stored = existsSync(path) ? parse(path) : {};
  return { path, stored, secrets: { ...fresh(stored), ...stored } };
}

function parse(path: string): Partial<Secrets> {
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Problem(`${path} can be read by others`, `Run: chmod 600 ${path}`);
  }
  const secrets: Partial<Secrets> = {};
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const equals = line.indexOf("=");
    const name = SECRET_NAMES.find((candidate) => candidate === line.slice(0, equals).trim());
    if (name !== undefined) secrets[name] = line.slice(equals + 1).trim();
  }
  return secrets;
}

/** Makes the missing secrets. The two keys belong together: when one is missing, both are made again. */
function fresh(stored: Partial<Secrets>): Secrets {
  const random = Object.fromEntries(RANDOM.map((name) => [name, randomBytes(SECRET_BYTES).toString("hex")]));
  if (stored[PRIVATE_KEY] === undefined || stored[PUBLIC_KEY] === undefined) {
    delete stored[PRIVATE_KEY];
    delete stored[PUBLIC_KEY];
  }
  const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "der" },
    publicKeyEncoding: { type: "spki", format: "der" },
  });
  const keys = { [PRIVATE_KEY]: privateKey.toString("base64"), [PUBLIC_KEY]: publicKey.toString("base64") };
  return { ...random, ...keys } as Secrets;
}
