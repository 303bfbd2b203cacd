/** A commit whose answer was lost is made again: the same one again has the same answer, and changes nothing. */
import { isDeepStrictEqual } from "node:util";
import type { ObjectRecord } from "@svc/contracts";
import { type CommitAttributes, type ObjectStore, StoreError } from "./store.ts";

const isNotFound = (error: unknown) => error instanceof StoreError && error.failure === "not_found";
type Said = { [Name in keyof CommitAttributes]: CommitAttributes[Name] | undefined };
const said = ({ namespace, readOnly, origin, account }: Said) => [namespace, readOnly, origin, account];

/**
 * The records of a session whose pending objects were not found, in the order of `files`, where exactly these were committed with
 * these attributes. Else throws `error`, or what the listing fails by.
 */
export async function committedBefore(
  store: Pick<ObjectStore, "list">,
  session: string,
  files: readonly string[],
  attributes: CommitAttributes,
  error: unknown,
): Promise<ObjectRecord[]> {
  if (!isNotFound(error)) throw error;
  const found = await store.list(session, files.length + 1).catch((failure: unknown) => {
    throw isNotFound(failure) ? error : failure;
  });
  const byId = new Map(found.map((record) => [record.id, record]));
  const records = files.flatMap((file) => byId.get(file) ?? []);
  const areThese = records.length === files.length && found.length === files.length;
  if (!areThese || !records.every((record) => isDeepStrictEqual(said(record), said(attributes)))) throw error;
  return records;
}
