/**
 * The layout of the bucket, which belongs to the store alone:
 *   records/<session>/<file>          the record of an object, as JSON; it alone makes the object visible
 *   content/<session>/<file>/<nonce>  the bytes of one write; a key is never written twice
 *   pending/<session>/<file>          the record of a pending object
 *   batches/<session>                 the marker that makes the objects of one commit visible together
 *   uses/<session>/<file>             empty; its time is the object's last use
 *   probes/<nonce>                    exists during one check of the store
 * Keys are exact. The prefix of a listing ends with a whole id and a slash, so that it never covers another session.
 */
import { randomBytes } from "node:crypto";
import { isId } from "@svc/contracts";
import { checkAddress, type ObjectAddress } from "../store.ts";

export const RECORDS = "records/";
export const CONTENT = "content/";
export const PENDING = "pending/";
export const BATCHES = "batches/";
export const USES = "uses/";
export const PROBES = "probes/";

type AddressedKind = typeof RECORDS | typeof PENDING | typeof USES;

export function keyOf(kind: AddressedKind, { session, file }: ObjectAddress): string {
  checkAddress(session, file);
  return `${kind}${session}/${file}`;
}

export function contentKey({ session, file }: ObjectAddress, nonce: string): string {
  checkAddress(session, file);
  return `${CONTENT}${session}/${file}/${nonce}`;
}

export function batchKey(session: string): string {
  checkAddress(session);
  return `${BATCHES}${session}`;
}

export function sessionPrefix(kind: AddressedKind | typeof CONTENT, session: string): string {
  checkAddress(session);
  return `${kind}${session}/`;
}

export function probeKey(): string {
  return `${PROBES}${freshNonce()}`;
}

export function freshNonce(): string {
  return randomBytes(16).toString("hex");
}

/** The address in a listed key of any kind; undefined for keys that the store did not make. */
export function addressIn(key: string): ObjectAddress | undefined {
  const [, session = "", file = "", ...rest] = key.split("/");
  const isOurs = isId(session) && isId(file) && rest.length === (key.startsWith(CONTENT) ? 1 : 0);
  return isOurs ? { session, file } : undefined;
}
