/**
 * The sources of verification keys: one key in a variable, a key set in a variable, a directory of key files. When two sources
 * have the same key id, the later one wins. Trusts the operator. This module never sees a token, so a token's key id never
 * becomes a path. The API reads its keys here, and `./svc` checks them here before a start.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join, parse } from "node:path";
import { z } from "zod";
import { keyProblem } from "../config/secret-quality.ts";
import type { Config } from "../config/variables.ts";
import { jwkSchema, KeyError, keyOfJwk, parseKeyText, type VerificationKey } from "./key-text.ts";

export type KeySet = ReadonlyMap<string, VerificationKey>;

/** Receives which entry of a source cannot be used, and why. */
export type OnProblem = (problem: string) => void;

/** The variables that provide keys, and those that restrict them. */
export type KeySettings = Pick<
  Config,
  | "SVC_JWT_PUBLIC_KEY"
  | "SVC_JWT_KID"
  | "SVC_JWT_KEY_ID"
  | "SVC_JWT_JWKS_JSON"
  | "SVC_JWT_PUBLIC_KEYS_DIR"
  | "SVC_JWT_ALLOWED_ALGS"
  | "SVC_API_KEYS_FILE"
>;

export interface VerificationKeys {
  fixed: KeySet;
  fromFiles: KeySet;
  /** All problems, each with its variable and the position there. The API does not start with any problem. */
  problems: string[];
  /** Whether this user lacks permission to read the directory or a file in it. */
  isDenied: boolean;
}

/** A longer file cannot be a key. */
const MAX_FILE_BYTES = 64 * 1024;

/** The keys of all sources as they are now. */
export async function verificationKeys(settings: KeySettings): Promise<VerificationKeys> {
  const problems: string[] = [];
  const note = (problem: string) => void problems.push(problem);
  const directory = settings.SVC_JWT_PUBLIC_KEYS_DIR;
  let code: string | undefined;
  const fixed = keysOfVariables(settings, note);
  const fromFiles = await keysOfDirectory(directory, note).catch((error: NodeJS.ErrnoException): KeySet => {
    code = error.code;
    note(
      `SVC_JWT_PUBLIC_KEYS_DIR ${directory} ${code === "ENOTDIR" ? "is not a folder" : `cannot be read (${code})`}`,
    );
    return new Map();
  });
  const count = usableKeys(settings, fixed).size + usableKeys(settings, fromFiles).size;
  if (problems.length === 0 && count === 0 && settings.SVC_API_KEYS_FILE === "") note(noKey(settings));
  return { fixed, fromFiles, problems, isDenied: code === "EACCES" };
}

function noKey({
  SVC_JWT_ALLOWED_ALGS: algorithms,
  SVC_JWT_PUBLIC_KEYS_DIR: directory,
}: KeySettings): string {
  const what = `no key that verifies access tokens (${algorithms.join(", ")})`;
  return directory === ""
    ? `${what}: set SVC_JWT_PUBLIC_KEYS_DIR, SVC_JWT_PUBLIC_KEY with SVC_JWT_KID, SVC_JWT_JWKS_JSON or SVC_API_KEYS_FILE (docs/authentication.md)`
    : `${what} is in SVC_JWT_PUBLIC_KEYS_DIR ${directory}`;
}

/** The keys with an allowed algorithm. */
export function usableKeys({ SVC_JWT_ALLOWED_ALGS: allowed }: KeySettings, keys: KeySet): KeySet {
  return new Map([...keys].filter(([, { algorithm }]) => allowed.includes(algorithm)));
}

/** The keys of the variables. They cannot change while the process lives. */
export function keysOfVariables(settings: KeySettings, onProblem: OnProblem): KeySet {
  return new Map([...singleKey(settings, onProblem), ...keySet(settings.SVC_JWT_JWKS_JSON, onProblem)]);
}

function singleKey(settings: KeySettings, onProblem: OnProblem): KeySet {
  const { SVC_JWT_PUBLIC_KEY: text, SVC_JWT_KID, SVC_JWT_KEY_ID } = settings;
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
 * The keys of a directory, one per file. The file name without extension is the key id. Skips hidden files and everything that
 * is not a regular file. A missing directory or file holds no key; any other read error throws. With `onClosed`, a single
 * file that this user may not read does not throw: `onClosed` gets the problem.
 */
export async function keysOfDirectory(
  directory: string,
  onProblem: OnProblem,
  onClosed?: OnProblem,
): Promise<KeySet> {
  const keys = new Map<string, VerificationKey>();
  if (directory === "") return keys;
  const names = await readdir(directory).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    onProblem(`SVC_JWT_PUBLIC_KEYS_DIR ${directory} does not exist`);
    return [];
  });
  for (const name of names.sort()) {
    if (name.startsWith(".")) continue;
    const path = join(directory, name);
    const text = await keyFile(path, onClosed);
    if (text === undefined) continue;
    const key = attempt(`SVC_JWT_PUBLIC_KEYS_DIR ${path}`, () => fileKey(text), onProblem);
    if (key !== undefined) keys.set(parse(name).name, key);
  }
  return keys;
}

/** Checks the quality of a key file's text. For texts of variables, config/load.ts does that. */
function fileKey(text: string): VerificationKey {
  const problem = keyProblem(text);
  if (problem !== undefined) throw new KeyError(problem);
  return parseKeyText(text);
}

/** Whether an error concerns this file only, not the disk and not a folder without search permission. */
function isClosed({ code = "", syscall }: NodeJS.ErrnoException): boolean {
  return code === "ELOOP" || (syscall === "open" && ["EACCES", "EPERM"].includes(code));
}

async function keyFile(path: string, onClosed?: OnProblem): Promise<string | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    return found.size > MAX_FILE_BYTES ? "" : await readFile(path, "latin1");
  } catch (error) {
    if (isMissing(error)) return undefined;
    const fault = error as NodeJS.ErrnoException;
    if (onClosed === undefined || !isClosed(fault)) throw error;
    onClosed(`SVC_JWT_PUBLIC_KEYS_DIR ${path} cannot be read (${fault.code})`);
    return undefined;
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
