/**
 * Key pairs of this copy's own signers: made on first use, read back ever after. The private key is for the owner of the
 * data folder alone; the public one lies in a folder that an API can be told to trust. The key id follows from the key.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { underLock } from "./lock.ts";
import { publicKeysFolder } from "./place.ts";
import { replaceFile } from "./replace.ts";

export interface KeyPair {
  kid: string;
  privateKey: KeyObject;
  /** File of the public key. */
  publicPath: string;
}

/** `signer`: who signs with it; begins the key id. */
export function keyPairOf(
  instance: Pick<Instance, "dataDir">,
  signer: "token" | "librechat",
): Promise<KeyPair> {
  const path = join(instance.dataDir, `${signer}-key.pem`);
  return underLock(path, () => {
    const privateKey = storedKey(path) ?? newKey(path);
    const publicKey = createPublicKey(privateKey);
    const digest = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" }));
    const kid = `${signer}-${digest.digest("hex").slice(0, 8)}`;
    return { kid, privateKey, publicPath: publish(publicKeysFolder(instance), kid, publicKey) };
  });
}

function storedKey(path: string): KeyObject | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if ((found.mode & 0o077) !== 0) {
    throw new Problem(`${path} can be read by others`, `Run: chmod 600 ${path}`);
  }
  const advice = `Remove it, and the next run makes a new key pair: rm ${path}`;
  try {
    const key = createPrivateKey(readFileSync(path));
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    throw new Problem(`${path} holds no private key`, advice);
  }
  throw new Problem(`${path} holds a key that is not Ed25519`, advice);
}

function newKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync("ed25519");
  replaceFile(path, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return privateKey;
}

function publish(folder: string, kid: string, publicKey: KeyObject): string {
  if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o755);
  const path = join(folder, `${kid}.pem`);
  const pem = publicKey.export({ type: "spki", format: "pem" }) as string;
  const isThere = statSync(path, { throwIfNoEntry: false })?.isFile() && readFileSync(path, "utf8") === pem;
  if (!isThere) replaceFile(path, pem, { mode: 0o644 });
  return path;
}
