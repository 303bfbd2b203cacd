/** Asks a runner whether it is ready, how many slots it has and uses, and which programs run there. */
import { answerBytes, type InnerClient } from "@svc/service-kit";
import { z } from "zod";
import { silenceOf } from "./outcome.ts";
import type { Outcome } from "./pool.ts";

const MAX_BYTES = 64 * 1024;
const TIMEOUT_MS = 5000;

const healthSchema = z.object({
  slots: z.object({ total: z.int().min(1), busy: z.int().min(0) }),
  /** Runners of earlier versions do not report it. */
  running: z.record(z.string(), z.int().min(0)).default({}),
});

export interface Probed {
  outcome: Outcome;
  slots?: number;
  /** Number of programs that run within their time limit, by language. */
  running?: Record<string, number>;
}

/** Never throws. */
export async function probeRunner(client: InnerClient): Promise<Probed> {
  try {
    const call = { method: "GET", path: "/api/v2/health", timeoutMs: TIMEOUT_MS } as const;
    const [status, bytes] = await client.whole(
      call,
      async (response): Promise<[number, Buffer]> => [
        response.statusCode,
        await answerBytes(response, MAX_BYTES),
      ],
    );
    if (status !== 200) return { outcome: "failed" };
    const { slots, running } = healthSchema.parse(JSON.parse(bytes.toString("utf8")));
    return { outcome: slots.busy < slots.total ? "ready" : "busy", slots: slots.total, running };
  } catch (error) {
    return { outcome: silenceOf((error as Error).cause ?? {}) };
  }
}
