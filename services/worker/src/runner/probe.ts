/** Asks a runner whether it is ready, and how many slots it has and uses. */
import { answerBytes, type InnerClient } from "@svc/service-kit";
import { z } from "zod";
import { silenceOf } from "./outcome.ts";
import type { Outcome } from "./pool.ts";

const MAX_BYTES = 64 * 1024;
const TIMEOUT_MS = 5000;

const healthSchema = z.object({ slots: z.object({ total: z.int().min(1), busy: z.int().min(0) }) });

/** Never throws. */
export async function probeRunner(client: InnerClient): Promise<{ outcome: Outcome; slots?: number }> {
  try {
    const response = await client.send({ method: "GET", path: "/api/v2/health", timeoutMs: TIMEOUT_MS });
    const text = (await answerBytes(response, MAX_BYTES)).toString("utf8");
    if (response.statusCode !== 200) return { outcome: "failed" };
    const { total, busy } = healthSchema.parse(JSON.parse(text)).slots;
    return { outcome: busy < total ? "ready" : "busy", slots: total };
  } catch (error) {
    return { outcome: silenceOf((error as Error).cause ?? {}) };
  }
}
