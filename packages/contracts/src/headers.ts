/** Names of the headers that components send each other. */

/** Header that names the namespace on calls to the file server: the file server refuses others' objects with 404. */
export const NAMESPACE_HEADER = "x-svc-namespace";

export const INTERNAL_TOKEN_HEADER = "x-svc-internal-token";

export const GRANT_HEADER = "x-svc-egress-grant";

export const MANIFEST_HEADER = "x-svc-execution-manifest";

export const ORIGINAL_FILENAME_HEADER = "x-original-filename";

export const READ_ONLY_HEADER = "x-read-only";
/** `true` has all bytes of an object read and checked before the answer begins: it says then why they cannot be had. */
export const CHECKED_HEADER = "x-svc-checked";
