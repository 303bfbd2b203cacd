/** Liveness, and readiness: Redis, file server, and an execution that went all the way in the last minute. */
import { CANARY_KEY } from "@svc/contracts";
import { type HttpServer, type InnerClient, type Lifecycle, type Redis, redisAlive } from "@svc/service-kit";
import { z } from "zod";

export interface HealthDeps {
  redis: Redis;
  fileServer: InnerClient;
  lifecycle: Lifecycle;
}

const readySchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  checks: z.record(z.string(), z.boolean()),
});

export function healthRoutes(app: HttpServer, { redis, fileServer, lifecycle }: HealthDeps): void {
  app.get(
    "/v1/health",
    {
      schema: {
        summary: "Liveness",
        operationId: "health",
        tags: ["operations"],
        response: { 200: z.object({ status: z.literal("ok") }) },
      },
    },
    async () => ({ status: "ok" as const }),
  );
  app.get(
    "/v1/ready",
    {
      schema: {
        summary: "Readiness",
        operationId: "ready",
        tags: ["operations"],
        response: { 200: readySchema, 503: readySchema },
      },
    },
    async (_request, reply) => {
      const [redisOk, files, canary] = await Promise.all([
        redisAlive(redis),
        reachable(fileServer),
        canaryFresh(redis),
      ]);
      const checks = { redis: redisOk, file_server: files, canary, running: lifecycle.state === "running" };
      const ok = Object.values(checks).every(Boolean);
      return reply.code(ok ? 200 : 503).send({ status: ok ? "ready" : "not_ready", checks });
    },
  );
}

async function reachable(fileServer: InnerClient): Promise<boolean> {
  try {
    const response = await fileServer.send({ method: "GET", path: "/ready", timeoutMs: 3000 });
    await response.body.dump();
    return response.statusCode === 200;
  } catch {
    return false;
  }
}

/** The key of the last success expires by itself when it is too old. */
async function canaryFresh(redis: Redis): Promise<boolean> {
  try {
    return (await redis.exists(CANARY_KEY)) === 1;
  } catch {
    return false;
  }
}
