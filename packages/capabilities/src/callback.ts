/**
 * Callback tokens: the runner's relay shows one when it forwards a tool call. They are sealed, so neither the relay nor the program
 * can read the tool call server's token, change the declared tools, or use the token for another execution.
 */
import { type Envelope, open, type SealKeys, seal } from "./envelope.ts";

export interface Callback {
  grant_id: string;
  exec_id: string;
  session_id: string;
  /** The raw token of the tool call server. */
  callback_token: string;
  allowed_tool_names: string[];
}

export function sealCallback(keys: SealKeys, callback: Callback, iat: number, exp: number): string {
  return seal(keys, { ...callback, v: 1, typ: "ptc-callback", iat, exp });
}

export function openCallback(keys: SealKeys, token: unknown, now: number): Callback & Envelope {
  return open(keys, token, "ptc-callback", now) as unknown as Callback & Envelope;
}
