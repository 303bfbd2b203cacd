export * from "./envelope.ts";
export * from "./grant.ts";
export * from "./ledger.ts";
