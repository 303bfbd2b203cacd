export * from "./archive.ts";
export * from "./compression.ts";
export * from "./members.ts";
