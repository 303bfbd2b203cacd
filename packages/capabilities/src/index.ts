export * from "./canonical.ts";
export * from "./envelope.ts";
export * from "./grant.ts";
export * from "./handle-book.ts";
export * from "./ledger.ts";
export * from "./manifest.ts";
export * from "./manifest-keys.ts";
export * from "./replay.ts";
