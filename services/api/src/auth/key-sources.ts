/**
 * Where verification keys come from: one key in a variable, a key set in a variable, a directory of key files. A key id
 * that two sources name has the key of the later one. Trusts the operator; nothing here is told what a token says, so no
 * key id of a token ever becomes a path.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join, parse } from "node:path";
import { type Config, keyProblem } from "@svc/service-kit";
import { z } from "zod";
import { jwkSchema, KeyError, keyOfJwk, parseKeyText, type VerificationKey } from "./key-text.ts";

export type KeySet = ReadonlyMap<string, VerificationKey>;

/** Says which entry of a source cannot be used, and why. */
export type OnProblem = (problem: string) => void;

/** A longer file holds no key. */
const MAX_FILE_BYTES = 64 * 1024;

/** The keys of the variables. They cannot change while the process lives. */
export function keysOfVariables(config: Config, onProblem: OnProblem): KeySet {
  return new Map([...singleKey(config, onProblem), ...keySet(config.SVC_JWT_JWKS_JSON, onProblem)]);
}

function singleKey(config: Config, onProblem: OnProblem): KeySet {
  const { SVC_JWT_PUBLIC_KEY: text, SVC_JWT_KID, SVC_JWT_KEY_ID } = config;
  if (text === "") return new Map();
  if (SVC_JWT_KID !== "" && SVC_JWT_KEY_ID !== "" && SVC_JWT_KID !== SVC_JWT_KEY_ID) {
    onProblem("SVC_JWT_KID and SVC_JWT_KEY_ID name different key ids; set one of them");
  }
  const found = attempt("SVC_JWT_PUBLIC_KEY", () => parseKeyText(text), onProblem);
  if (found === undefined) return new Map();
  const kid = SVC_JWT_KID || SVC_JWT_KEY_ID || found.kid;
  if (kid !== undefined) return new Map([[kid, found]]);
  onProblem("SVC_JWT_PUBLIC_KEY needs its key id in SVC_JWT_KID");
  return new Map();
}

const keySetSchema = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });

function keySet(text: string, onProblem: OnProblem): KeySet {
  const keys = new Map<string, VerificationKey>();
  if (text === "") return keys;
  let entries: Record<string, unknown>[];
  try {
    entries = keySetSchema.parse(JSON.parse(text)).keys;
  } catch {
    onProblem("SVC_JWT_JWKS_JSON is not of the form {keys:[...]}");
    return keys;
  }
  for (const [index, entry] of entries.entries()) {
    const { kid } = entry;
    if (typeof kid !== "string" || kid === "") continue;
    const read = () => {
      const jwk = jwkSchema.safeParse(entry);
      if (!jwk.success) throw new KeyError("is no public JWK for signatures");
      return keyOfJwk(jwk.data);
    };
    const key = attempt(`SVC_JWT_JWKS_JSON keys[${index}]`, read, onProblem);
    if (key !== undefined) keys.set(kid, key);
  }
  return keys;
}

/**
 * The keys of a directory: one per file, the file name without extension is the key id. Hidden files and whatever
 * is no regular file are passed over. What is not there holds no key; what cannot be read for another reason throws.
 */
export async function keysOfDirectory(directory: string, onProblem: OnProblem): Promise<KeySet> {
  const keys = new Map<string, VerificationKey>();
  if (directory === "") return keys;
  const names = await readdir(directory).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    onProblem(`SVC_JWT_PUBLIC_KEYS_DIR ${directory} does not exist`);
    return [];
  });
  for (const name of names.sort()) {
    if (name.startsWith(".")) continue;
    const text = await keyFile(join(directory, name));
    if (text === undefined) continue;
    const key = attempt(`the key file ${name}`, () => fileKey(text), onProblem);
    if (key !== undefined) keys.set(parse(name).name, key);
  }
  return keys;
}

/** Texts of variables are judged where variables are read. */
function fileKey(text: string): VerificationKey {
  const problem = keyProblem(text);
  if (problem !== undefined) throw new KeyError(problem);
  return parseKeyText(text);
}

async function keyFile(path: string): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    return found.size > MAX_FILE_BYTES ? "" : await readFile(path, "latin1");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const isMissing = (error: unknown) => (error as { code?: unknown } | null)?.code === "ENOENT";

function attempt<T>(source: string, read: () => T, onProblem: OnProblem): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof KeyError)) throw error;
    onProblem(`${source} ${error.message}`);
    return undefined;
  }
}
