/**
 * Key pairs of this copy's own signers: made on first use, then read back. Only the owner of the data folder can read the
 * private key. The public key lies in a folder that an API can be configured to trust. The key id is derived from the key.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { replaceFile } from "../system/replace-file.ts";
import { systemProblem } from "../unexpected.ts";
import { underLock } from "./lock.ts";
import { publicKeysFolder } from "./place.ts";

export interface KeyPair {
  kid: string;
  privateKey: KeyObject;
  /** File of the public key. */
  publicPath: string;
  /** Whether the public key was not in its folder before. */
  isNew: boolean;
}

export type Signer = "token" | "librechat";

/** `signer`: who signs with the key. The key id begins with it. */
export function keyPairOf(instance: Pick<Instance, "dataDir">, signer: Signer): Promise<KeyPair> {
  const path = privateKeyPath(instance, signer);
  return underLock(path, () => {
    const pair = pairOf(instance, signer, storedKey(path) ?? newKey(path));
    return { ...pair, isNew: publish(pair) };
  });
}

/** Returns an existing pair whose public key is still where it was published. Makes no key, and never throws for an unusable one. */
export function publishedKeyPair(instance: Pick<Instance, "dataDir">): KeyPair | undefined {
  for (const signer of ["token", "librechat"] as const) {
    const privateKey = usableKey(privateKeyPath(instance, signer));
    const pair = privateKey === undefined ? undefined : pairOf(instance, signer, privateKey);
    if (pair !== undefined && isPublished(pair)) return { ...pair, isNew: false };
  }
  return undefined;
}

export function privateKeyPath({ dataDir }: Pick<Instance, "dataDir">, signer: Signer): string {
  return join(dataDir, `${signer}-key.pem`);
}

type Pair = Omit<KeyPair, "isNew">;

function pairOf(instance: Pick<Instance, "dataDir">, signer: Signer, privateKey: KeyObject): Pair {
  const der = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const kid = `${signer}-${createHash("sha256").update(der).digest("hex").slice(0, 8)}`;
  return { kid, privateKey, publicPath: join(publicKeysFolder(instance), `${kid}.pem`) };
}

function storedKey(path: string): KeyObject | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if ((found.mode & 0o077) !== 0) {
    throw new Problem(`${path} can be read by others`, `Run: chmod 600 ${path}`);
  }
  const advice = `Remove it, and the next run makes a new key pair: rm ${path}`;
  const pem = readFileSync(path);
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    throw new Problem(`${path} holds no private key`, advice);
  }
  throw new Problem(`${path} holds a key that is not Ed25519`, advice);
}

/** A start does not depend on a key that only commands sign with. Those commands report what is wrong with it. */
function usableKey(path: string): KeyObject | undefined {
  try {
    return storedKey(path);
  } catch (error) {
    if (error instanceof Problem || systemProblem(error) !== undefined) return undefined;
    throw error;
  }
}

function newKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync("ed25519");
  replaceFile(path, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return privateKey;
}

const publicPem = ({ privateKey }: Pair) =>
  createPublicKey(privateKey).export({ type: "spki", format: "pem" }) as string;

function isPublished(pair: Pair): boolean {
  const isFile = statSync(pair.publicPath, { throwIfNoEntry: false })?.isFile();
  return isFile === true && readFileSync(pair.publicPath, "utf8") === publicPem(pair);
}

/** Returns whether the public key was not there before. */
function publish(pair: Pair): boolean {
  const folder = dirname(pair.publicPath);
  if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o755);
  if (isPublished(pair)) return false;
  replaceFile(pair.publicPath, publicPem(pair), { mode: 0o644 });
  return true;
}
