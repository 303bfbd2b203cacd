/** The public API as one Fastify app: all routes, with authentication and limits in front of them, and the OpenAPI document. */
import swagger from "@fastify/swagger";
import { JSON_BOUNDS } from "@svc/contracts";
import { type JobProducer, KeptJobs } from "@svc/job-queue";
import {
  counter,
  createHttpServer,
  type FastifyRequest,
  type HttpServer,
  httpMetrics,
  type InnerClient,
  isLoopback,
  isUnauthenticated,
  type Lifecycle,
  limitsOfPlan,
  metricsRoutes,
  StoredBytes,
  type Tracing,
} from "@svc/service-kit";
import { type SessionStore, sessionStoreFor } from "@svc/session-store";
import type { FastifyInstance } from "fastify";
import type { IdentityProvider } from "./auth/provider.ts";
import { consoleRoutes } from "./console/routes.ts";
import type { ExecDeps } from "./exec/asked.ts";
import { Idempotency } from "./exec/idempotency.ts";
import { execRoute } from "./exec/route.ts";
import { KnownRuntimes } from "./exec/runtimes.ts";
import { FileStorage } from "./files/file-storage.ts";
import { fileRoutes } from "./files/routes.ts";
import { healthRoutes } from "./health.ts";
import { Jobs } from "./jobs/jobs.ts";
import { jobRoutes } from "./jobs/routes.ts";
import { languageRoutes } from "./languages/routes.ts";
import { limits } from "./limits/hook.ts";
import { mcpRoute } from "./mcp/route.ts";
import { openApiOptions } from "./openapi/options.ts";
import { openApiRoutes } from "./openapi/routes.ts";
import { originGuard } from "./origin-guard.ts";
import { authentication, isAuthenticated, planOf, principalOf } from "./principal.ts";
import { profiles } from "./profiles.ts";
import { programmaticRoutes } from "./programmatic/routes.ts";
import { type Parts, programmaticDeps } from "./programmatic/wiring.ts";
import { requestFields } from "./request-log.ts";
import { persistentSessionRoutes } from "./sessions/routes.ts";
import { startSweep } from "./sessions/sweep.ts";
import { traceRequests } from "./tracing.ts";
import { giveUpUnread } from "./unread.ts";

/** The largest body where a route sets no limit. Routes with larger bodies bound how many of a caller's are read at once (limits/hook.ts). */
const SMALL_BODY_BYTES = 64 * 1024;

export interface ApiDeps extends Parts {
  lifecycle: Lifecycle;
  fileServer: InnerClient;
  jobs: JobProducer;
  identity: IdentityProvider;
  tracing?: Tracing | undefined;
}

export async function buildApi(deps: ApiDeps): Promise<HttpServer> {
  const { config, log, registry, lifecycle, redis, fileServer } = deps;
  const app = httpServer(deps);
  giveUpUnread(app);
  await app.register(swagger, openApiOptions());
  if (isUnauthenticated(config)) originGuard(app, config);
  authentication(app, deps.identity, registry);
  const refuseWhenFull = () => deps.jobs.refuseWhenFull();
  const callers = { principalOf, isAuthenticated };
  const { holdingSeat, holdingRound } = limits(app, { config, redis, registry, ...callers, refuseWhenFull });
  profiles(app, isAuthenticated, config.SVC_PERSIST_SESSIONS);
  metricsRoutes(app, {
    registry,
    token: config.SVC_METRICS_TOKEN,
    isReachable: !isLoopback(config.SERVICE_HOST) || config.TRUST_PROXY > 0,
    paths: ["/metrics", "/v1/metrics"],
  });
  healthRoutes(app, { redis, fileServer, lifecycle });
  const planLimitsOf = (request: FastifyRequest) => limitsOfPlan(config.SVC_PLAN_LIMITS, planOf(request));
  const lookupRecords = await fileRoutes(app, {
    config,
    log,
    registry,
    redis,
    fileServer,
    principalOf,
    planLimitsOf,
  });
  const runtimes = new KnownRuntimes(redis);
  const sessions = config.SVC_PERSIST_SESSIONS ? sessionStoreFor(redis, config) : undefined;
  const stored = new StoredBytes(redis, config.SVC_MAX_STORED_BYTES);
  const exec: ExecDeps = {
    config,
    jobs: deps.jobs,
    feed: deps.jobs.feed,
    kept: new Jobs(config, new KeptJobs(redis), deps.jobs),
    idempotency: new Idempotency(redis, stored),
    runtimes,
    submitted: counter(registry, "svc_jobs_submitted_total"),
    principalOf,
    planLimitsOf,
    lookupRecords,
    holdingSeat,
    sessions,
  };
  execRoute(app, exec);
  app.register(async (scope) => withoutBodies(scope, (one) => jobRoutes(one, { ...exec, jobs: exec.kept })));
  sessionRoutes(app, deps, sessions);
  languageRoutes(app, runtimes);
  openApiRoutes(app);
  if (config.SVC_CONSOLE) consoleRoutes(app);
  if (config.SVC_MCP) mcpRoute(app, { config, principalOf });
  programmaticRoutes(app, programmaticDeps(app, { ...deps, stored, holdingRound }, exec));
  return app;
}

function httpServer({ config, log, registry, lifecycle, tracing }: ApiDeps): HttpServer {
  const fields = requestFields(config, { principalOf, isAuthenticated });
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: SMALL_BODY_BYTES,
    json: {
      timeoutMs: config.BODY_TIMEOUT_MS,
      bounds: JSON_BOUNDS,
    },
    trustProxy: config.TRUST_PROXY,
    metrics: httpMetrics(registry, "svc_http"),
    requestFields: fields,
    alwaysOn: ["/v1/health", "/v1/health/detailed", "/v1/ready", "/metrics", "/v1/metrics"],
  });
  if (tracing !== undefined) traceRequests(app, tracing, fields);
  return app;
}

/** Registers routes that have no body. A body that a client sends anyway is not read. */
function withoutBodies(scope: FastifyInstance, routes: (scope: HttpServer) => void): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  routes(scope as unknown as HttpServer);
}

function sessionRoutes(
  app: HttpServer,
  { config, log, redis, fileServer }: ApiDeps,
  sessions: SessionStore | undefined,
): void {
  const storage = new FileStorage(fileServer);
  const maxBytes = config.SVC_SESSION_STATE_MAX_BYTES;
  app.register(async (scope) =>
    withoutBodies(scope, (one) => persistentSessionRoutes(one, { sessions, storage, principalOf, maxBytes })),
  );
  if (sessions === undefined) return;
  const stopSweep = startSweep({ config, log, redis, sessions, storage });
  app.addHook("onClose", async () => stopSweep());
}
