export type { OnOutput } from "./dialogue.ts";
export { CHUNK_BYTES, FrameDecoder, frame, ProtocolError } from "./frames.ts";
export * from "./run.ts";
export * from "./types.ts";
