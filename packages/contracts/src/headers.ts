/** Names of the headers that components send each other. */

/** Names the caller's namespace on calls to the file server, which answers 404 for objects of other namespaces. */
export const NAMESPACE_HEADER = "x-svc-namespace";

export const INTERNAL_TOKEN_HEADER = "x-svc-internal-token";

export const GRANT_HEADER = "x-svc-egress-grant";

export const MANIFEST_HEADER = "x-svc-execution-manifest";

export const ORIGINAL_FILENAME_HEADER = "x-original-filename";

export const READ_ONLY_HEADER = "x-read-only";
/** `true`: the file server reads and checks the whole object before it answers, so that the answer can say why a read failed. */
export const CHECKED_HEADER = "x-svc-checked";
