/** Liveness, and readiness: Redis, the file server, the process itself, and for each queue a canary execution in the last minute. */
import {
  canaryKey,
  canaryReason,
  type QueueKind,
  queueKindsOf,
  RUNTIMES_KEY,
  type RuntimeInfo,
} from "@svc/contracts";
import {
  askPeer,
  checkReadiness,
  descriptorsCheck,
  type FastifyReply,
  type HttpServer,
  type InnerClient,
  type Lifecycle,
  peerReason,
  RETRY_AFTER,
  type Redis,
  redisChecks,
  runningCheck,
  shared,
  toldOf,
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
    reasons: z
      .record(z.string(), z.string())
      .optional()
      .meta({
        description: "Of each check that failed: why, for an operator.",
        example: { canary: "no execution went through in the last minute (python)" },
      }),
  })
  .meta({ id: "Readiness", description: "Whether executions go through." });
const checkSchema = z.object({
  ok: z.boolean().meta({ description: "It passed.", example: true }),
  ms: z.number().optional().meta({ description: "How long the check took.", example: 0.4 }),
  reason: z
    .string()
    .optional()
    .meta({ description: "Why it failed, for an operator.", example: "Redis cannot be reached" }),
});
const timeSchema = z.iso.datetime();
const detailedSchema = z
  .object({
    status: statusSchema,
    version: versionSchema,
    time: timeSchema.meta({ description: "When it was checked.", example: "2026-01-31T10:00:00.000Z" }),
    checks: z
      .object({
        redis: checkSchema.meta({ description: "Redis answers and takes writes." }),
        clock: checkSchema.meta({ description: "The API's clock is close to Redis's." }),
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
        descriptors: checkSchema.meta({ description: "The API can open files and connections." }),
        running: checkSchema.meta({ description: "The API neither starts nor stops." }),
      })
      .meta({ description: "The checks, with how long each took." }),
  })
  .meta({ id: "DetailedHealth", description: "Whether executions go through, and what each check found." });
type Detailed = z.infer<typeof detailedSchema>;
type Canary = Pick<Detailed["checks"]["canary"], "last_success">;

export function healthRoutes(app: HttpServer, deps: HealthDeps): void {
  const look = lookingAt(deps);
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
      const { readiness } = await look();
      return { status: statusOf(readiness, reply), ...toldOf(readiness) };
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
      const time = new Date().toISOString();
      const { readiness, canary } = await look();
      const { findings } = readiness;
      const checks = { ...findings, canary: { ...findings.canary, ...canary } };
      return { version: VERSION, time, status: statusOf(readiness, reply), checks };
    },
  );
}

/** Returns the status for the body, and sets the HTTP status of the answer. */
function statusOf({ ok }: { ok: boolean }, reply: FastifyReply): Detailed["status"] {
  if (!ok) reply.code(503).headers(RETRY_AFTER);
  return ok ? "ready" : "not_ready";
}

/** Concurrent requests share one check, because anybody may ask. */
function lookingAt({ redis, fileServer, lifecycle }: HealthDeps) {
  const own = { ...redisChecks(redis), descriptors: descriptorsCheck, running: runningCheck(lifecycle) };
  return shared(async () => {
    let canary: Canary = { last_success: {} };
    const readiness = await checkReadiness({
      ...own,
      file_server: async () => peerReason("the file server", await askPeer(fileServer, "/ready")),
      canary: async () => {
        const { reason, ...found } = await canaries(redis);
        canary = found;
        return reason;
      },
    });
    return { readiness, canary };
  });
}

/** Checks every queue that an installed language needs. The Redis key of a last success expires when it is too old. */
async function canaries(redis: Redis): Promise<Canary & { reason?: string | undefined }> {
  const keys = [RUNTIMES_KEY, canaryKey("python"), canaryKey("other")];
  const values = await redis.mget(keys).catch(() => undefined);
  if (values === undefined) return { reason: "not known without Redis", last_success: {} };
  const [runtimes, ...times] = values;
  const found: Record<QueueKind, string | null | undefined> = { python: times[0], other: times[1] };
  const languages = (JSON.parse(runtimes ?? "[]") as RuntimeInfo[]).map(({ language }) => language);
  const kinds = queueKindsOf(languages);
  const stale = kinds.filter((kind) => found[kind] == null);
  return {
    reason: kinds.length === 0 ? NO_RUNTIME : stale.length === 0 ? undefined : canaryReason(stale),
    last_success: Object.fromEntries(kinds.map((kind) => [kind, timeOf(found[kind])])),
  };
}

const NO_RUNTIME = "no worker has told of a runtime yet";
const timeOf = (ms: string | null | undefined) => (ms == null ? null : new Date(Number(ms)).toISOString());
