/** Makes commits idempotent: a commit that is repeated after a lost response returns the same records and changes nothing. */
import { isDeepStrictEqual } from "node:util";
import type { ObjectRecord } from "@svc/contracts";
import { type CommitAttributes, type ObjectStore, StoreError } from "./store.ts";

const isNotFound = (error: unknown) => error instanceof StoreError && error.failure === "not_found";
type Said = { [Name in keyof CommitAttributes]: CommitAttributes[Name] | undefined };
const said = ({ namespace, readOnly, origin, account }: Said) => [namespace, readOnly, origin, account];

/**
 * For a commit that failed with `error` because it did not find its pending objects. If exactly these files were committed before with
 * these attributes, returns their records in the order of `files`. Otherwise throws `error`, or the error of the listing.
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
