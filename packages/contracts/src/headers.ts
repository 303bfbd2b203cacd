/** Names of the headers that components send each other. */

/** Header that names the namespace on calls to the file server: the file server refuses others' objects with 404. */
export const NAMESPACE_HEADER = "x-svc-namespace";

export const INTERNAL_TOKEN_HEADER = "x-svc-internal-token";

export const GRANT_HEADER = "x-svc-egress-grant";

export const MANIFEST_HEADER = "x-svc-execution-manifest";

export const ORIGINAL_FILENAME_HEADER = "x-original-filename";

export const READ_ONLY_HEADER = "x-read-only";
