/** How one component asks another whether it is ready. */
import { z } from "zod";
import { answerBytes, type InnerClient } from "../http/inner-client.ts";

const MAX_BYTES = 64 * 1024;
/** Longer than any check of the other component takes. */
const DEFAULT_MS = 7000;
const MAX_REASONS = 300;

const reasonsSchema = z.object({ reasons: z.record(z.string(), z.string()) });

export interface PeerAnswer {
  status: number;
  /** Parsed JSON; undefined when the body is not JSON. */
  body: unknown;
}

/** Undefined: there was no answer in time. */
export async function askPeer(
  client: InnerClient,
  path: string,
  timeoutMs = DEFAULT_MS,
): Promise<PeerAnswer | undefined> {
  try {
    return await client.whole({ method: "GET", path, timeoutMs }, async (response) => {
      const text = (await answerBytes(response, MAX_BYTES)).toString("utf8");
      return { status: response.statusCode, body: parsed(text) };
    });
  } catch {
    return undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why the component is not ready, in its own words; undefined when it is ready. `name`: like "the runner". */
export function peerReason(name: string, answer: PeerAnswer | undefined): string | undefined {
  if (answer === undefined) return `${name} cannot be reached`;
  if (answer.status === 200) return undefined;
  const told = reasonsSchema.safeParse(answer.body);
  if (!told.success) return `${name} is not ready`;
  const reasons = Object.values(told.data.reasons).join("; ");
  return `${name} is not ready: ${printable(reasons).slice(0, MAX_REASONS)}`;
}

const printable = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, " ");
