/** Liveness, and readiness: Redis, file server, and of each queue an execution that went all the way in the last minute. */
import { canaryKey, type QueueKind, queueKindsOf, RUNTIMES_KEY, type RuntimeInfo } from "@svc/contracts";
import {
  type FastifyReply,
  type HttpServer,
  type InnerClient,
  type Lifecycle,
  RETRY_AFTER,
  type Redis,
  redisAlive,
  VERSION,
} from "@svc/service-kit";
import { z } from "zod";

export interface HealthDeps {
  redis: Redis;
  fileServer: InnerClient;
  lifecycle: Lifecycle;
}

const versionSchema = z.string().meta({ description: "Version of the service.", example: "0.1.0" });
const statusSchema = z
  .enum(["ready", "not_ready"])
  .meta({ description: "Whether all checks passed.", example: "ready" });
const aliveSchema = z
  .object({
    status: z.literal("ok").meta({ description: "Always the same.", example: "ok" }),
    version: versionSchema,
  })
  .meta({ id: "Health", description: "The process lives." });
const readySchema = z
  .object({
    status: statusSchema,
    checks: z
      .record(z.string(), z.boolean())
      .meta({ description: "Each check, and whether it passed.", example: { redis: true, canary: false } }),
  })
  .meta({ id: "Readiness", description: "Whether executions go through." });
const checkSchema = z.object({
  ok: z.boolean().meta({ description: "It passed.", example: true }),
  ms: z.number().optional().meta({ description: "How long the check took.", example: 0.4 }),
});
const timeSchema = z.iso.datetime();
const detailedSchema = z
  .object({
    status: statusSchema,
    version: versionSchema,
    time: timeSchema.meta({ description: "When it was checked.", example: "2026-01-31T10:00:00.000Z" }),
    checks: z
      .object({
        redis: checkSchema.meta({ description: "Redis answers." }),
        file_server: checkSchema.meta({ description: "The file server is ready." }),
        canary: checkSchema
          .extend({
            last_success: z.record(z.string(), timeSchema.nullable()).meta({
              description:
                "By queue: when an execution last went through queue, worker and jail; null when none did in the last minute.",
              example: { python: "2026-01-31T10:00:00.000Z", other: null },
            }),
          })
          .meta({ description: "An execution of each queue went through in the last minute." }),
        running: checkSchema.meta({ description: "The API neither starts nor stops." }),
      })
      .meta({ description: "The checks, with how long each took." }),
  })
  .meta({ id: "DetailedHealth", description: "Whether executions go through, and what each check found." });
type Checks = z.infer<typeof detailedSchema>["checks"];
type Readiness = Pick<z.infer<typeof detailedSchema>, "status" | "checks">;

export function healthRoutes(app: HttpServer, deps: HealthDeps): void {
  app.get(
    "/v1/health",
    {
      schema: {
        summary: "Liveness",
        operationId: "health",
        tags: ["operations"],
        response: { 200: aliveSchema },
      },
    },
    async () => ({ status: "ok" as const, version: VERSION }),
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
      const { status, checks } = await toldReadiness(deps, reply);
      const shown = Object.fromEntries(Object.entries(checks).map(([name, { ok }]) => [name, ok]));
      return { status, checks: shown };
    },
  );
  app.get(
    "/v1/health/detailed",
    {
      schema: {
        summary: "The checks of readiness, with their times",
        operationId: "healthDetailed",
        tags: ["service"],
        response: { 200: detailedSchema, 503: detailedSchema },
      },
    },
    async (_request, reply) => ({
      version: VERSION,
      time: new Date().toISOString(),
      ...(await toldReadiness(deps, reply)),
    }),
  );
}

/** Checks, and gives the answer its status. */
async function toldReadiness(deps: HealthDeps, reply: FastifyReply): Promise<Readiness> {
  const found = await readiness(deps);
  if (found.status === "not_ready") reply.code(503).headers(RETRY_AFTER);
  return found;
}

async function readiness({ redis, fileServer, lifecycle }: HealthDeps): Promise<Readiness> {
  const [redisCheck, files, canary] = await Promise.all([
    timed(async () => ({ ok: await redisAlive(redis) })),
    timed(async () => ({ ok: await reachable(fileServer) })),
    timed(() => canaries(redis)),
  ]);
  const running = { ok: lifecycle.state === "running" };
  const checks: Checks = { redis: redisCheck, file_server: files, canary, running };
  const isReady = Object.values(checks).every(({ ok }) => ok);
  return { status: isReady ? "ready" : "not_ready", checks };
}

async function timed<T extends object>(check: () => Promise<T>): Promise<T & { ms: number }> {
  const start = performance.now();
  const found = await check();
  return { ...found, ms: Math.round((performance.now() - start) * 10) / 10 };
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

/** Every queue that an installed language needs. The key of a last success expires by itself when it is too old. */
async function canaries(redis: Redis): Promise<Omit<Checks["canary"], "ms">> {
  try {
    const [runtimes, ...times] = await redis.mget(RUNTIMES_KEY, canaryKey("python"), canaryKey("other"));
    const found: Record<QueueKind, string | null | undefined> = { python: times[0], other: times[1] };
    const languages = (JSON.parse(runtimes ?? "[]") as RuntimeInfo[]).map(({ language }) => language);
    const kinds = queueKindsOf(languages);
    return {
      ok: kinds.length > 0 && kinds.every((kind) => found[kind] != null),
      last_success: Object.fromEntries(kinds.map((kind) => [kind, timeOf(found[kind])])),
    };
  } catch {
    return { ok: false, last_success: {} };
  }
}

const timeOf = (ms: string | null | undefined) => (ms == null ? null : new Date(Number(ms)).toISOString());
