/** Liveness, and readiness: Redis, file server, and of each queue an execution that went all the way in the last minute. */
import { canaryKey, type QueueKind, queueKindsOf, RUNTIMES_KEY, type RuntimeInfo } from "@svc/contracts";
import {
  type HttpServer,
  type InnerClient,
  type Lifecycle,
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

const versionSchema = z.string().meta({ description: "Version of the service." });
const statusSchema = z.enum(["ready", "not_ready"]);
const readySchema = z.object({ status: statusSchema, checks: z.record(z.string(), z.boolean()) });
const checkSchema = z.object({
  ok: z.boolean(),
  ms: z.number().optional().meta({ description: "How long the check took." }),
});
const detailedSchema = z
  .object({
    status: statusSchema,
    version: versionSchema,
    time: z.iso.datetime(),
    checks: z.object({
      redis: checkSchema,
      file_server: checkSchema,
      canary: checkSchema.extend({
        last_success: z.record(z.string(), z.iso.datetime().nullable()).meta({
          description:
            "By queue: when an execution last went through queue, worker and jail; null when none did in the last minute.",
        }),
      }),
      running: checkSchema,
    }),
  })
  .meta({ id: "DetailedHealth" });

export function healthRoutes(app: HttpServer, deps: HealthDeps): void {
  app.get(
    "/v1/health",
    {
      schema: {
        summary: "Liveness",
        operationId: "health",
        tags: ["operations"],
        response: { 200: z.object({ status: z.literal("ok"), version: versionSchema }) },
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
      const { status, checks } = await readiness(deps);
      const shown = Object.fromEntries(Object.entries(checks).map(([name, { ok }]) => [name, ok]));
      return reply.code(status === "ready" ? 200 : 503).send({ status, checks: shown });
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
    async (_request, reply) => {
      const { status, checks } = await readiness(deps);
      const time = new Date().toISOString();
      return reply.code(status === "ready" ? 200 : 503).send({ status, version: VERSION, time, checks });
    },
  );
}

type Checks = z.infer<typeof detailedSchema>["checks"];

async function readiness({ redis, fileServer, lifecycle }: HealthDeps) {
  const [redisCheck, files, canary] = await Promise.all([
    timed(async () => ({ ok: await redisAlive(redis) })),
    timed(async () => ({ ok: await reachable(fileServer) })),
    timed(() => canaries(redis)),
  ]);
  const running = { ok: lifecycle.state === "running" };
  const checks: Checks = { redis: redisCheck, file_server: files, canary, running };
  const isReady = Object.values(checks).every(({ ok }) => ok);
  return { status: isReady ? ("ready" as const) : ("not_ready" as const), checks };
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
