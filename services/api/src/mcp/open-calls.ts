/**
 * The MCP requests that this process is answering, so that a client can cancel one with another request. A client gets a label at
 * `initialize` and sends it with each request (Mcp-Session-Id), because request ids are unique only within one client.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Principal } from "@svc/contracts";
import { callerKey } from "../limits/limiter.ts";

const LABEL = /^[\x21-\x7e]{1,128}$/;

/** Who sent a message. `label`: undefined when the client sends none; then its requests cannot be cancelled this way. */
export interface Sender {
  principal: Principal;
  label: string | undefined;
}

export const newLabel = (): string => randomUUID();

export function labelOf(header: unknown): string | undefined {
  return typeof header === "string" && LABEL.test(header) ? header : undefined;
}

export class OpenCalls {
  readonly #cancels = new Map<string, () => void>();

  /** Calls `cancel` when the client cancels the request. The returned function ends this. */
  enter(sender: Sender, id: unknown, cancel: () => void): () => void {
    const key = keyOf(sender, id);
    if (key === undefined) return () => undefined;
    this.#cancels.set(key, cancel);
    return () => {
      if (this.#cancels.get(key) === cancel) this.#cancels.delete(key);
    };
  }

  cancel(sender: Sender, id: unknown): void {
    const key = keyOf(sender, id);
    if (key !== undefined) this.#cancels.get(key)?.();
  }
}

/** A digest, so that an id of megabytes gives a short key, too. */
function keyOf({ principal, label }: Sender, id: unknown): string | undefined {
  if (label === undefined || (typeof id !== "string" && typeof id !== "number")) return undefined;
  const text = JSON.stringify([callerKey(principal), label, id]);
  return createHash("sha256").update(text).digest("base64url");
}
