/**
 * The runner's routes: admit, call, reply. Only the worker calls them, and signs; the port is
 * never published. A caller that closes its connection kills its run.
 */

import {
  JSON_BOUNDS,
  type JsonBounds,
  type ResumeRequest,
  type RoundResponse,
  ServiceError,
} from "@svc/contracts";
import {
  type Check,
  type Config,
  type Context,
  callersOf,
  checkReadiness,
  clientGone,
  createHttpServer,
  descriptorsCheck,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  httpMetrics,
  metricsRoutes,
  runningCheck,
  toldOf,
  wrongContentType,
} from "@svc/service-kit";
import type { LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import type { onRequestHookHandler } from "fastify";
import { limitsFor, toldLimits } from "./admission/limits.ts";
import {
  type Admitted,
  isManifestError,
  type ManifestVerifier,
  type Presented,
} from "./admission/manifest.ts";
import { answerRound } from "./event-answer.ts";
import { WORKSPACE } from "./execution/program.ts";
import type { Runtimes } from "./execution/runtimes.ts";
import type { Call } from "./execution/types.ts";
import type { GatewayClient } from "./gateway.ts";
import { gatewayChecks } from "./gateway-checks.ts";
import { MANIFEST_ERROR, type RunnerMetrics, UNKNOWN_LANGUAGE } from "./metrics.ts";
import { outputLimits } from "./outputs/limits.ts";
import { withRunLine } from "./run-line.ts";

/** Runs the programs of admitted requests. */
export interface Runs {
  execute: (admitted: Admitted, call: Call) => Promise<RoundResponse>;
  resume: (request: ResumeRequest, call: Call) => Promise<RoundResponse>;
  /** Ends a program in any state. False: there is none. */
  discard: (executionId: string) => boolean;
}

export interface RunnerApp extends Context {
  runs: Runs;
  /** Says why no program can be run now. */
  jail: Check;
  /** Numbers of slots, paused programs and waiting jails. */
  counts: () => Readonly<Record<"total" | "busy" | "paused" | "retained", number>>;
  runtimes: Runtimes;
  overrides: LimitOverrides;
  gateway: GatewayClient;
  runMetrics: Pick<RunnerMetrics, "began" | "running">;
  verifier: ManifestVerifier;
  /** Aborted: everything that runs is ended. */
  stopping: AbortSignal;
}

export function buildRunner(runner: RunnerApp): HttpServer {
  const { config, log, registry, lifecycle, tls } = runner;
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: callersOf("runner"),
    bodyLimit: config.SANDBOX_EXECUTE_BODY_LIMIT,
    json: { bounds: boundsOf(config) },
    metrics: httpMetrics(registry, "svc_sandbox_http"),
    alwaysOn: ["/health", "/api/v2/health", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  operationalRoutes(app, runner);
  executionRoutes(app, runner);
  return app;
}

/** More JSON values than a recorded call has, whose own JSON is embedded as text. */
const VALUES_OF_A_CALL = 8;

/** Bounds of a body, which is parsed before its signature is checked. It holds what a caller sent, and the calls that a program made. */
const boundsOf = ({ PTC_MAX_CALLS }: Config): JsonBounds => ({
  depth: JSON_BOUNDS.depth,
  values: JSON_BOUNDS.values + VALUES_OF_A_CALL * PTC_MAX_CALLS,
});

function operationalRoutes(app: HttpServer, runner: RunnerApp): void {
  const { config, overrides, runtimes, lifecycle } = runner;
  const checks = {
    jail: runner.jail,
    ...gatewayChecks(runner.gateway.client),
    descriptors: descriptorsCheck,
    running: runningCheck(lifecycle),
  };
  app.get("/health", async () => ({ status: "ok" }));
  app.get("/api/v2/health", async (_request, reply) => {
    const found = await checkReadiness(checks);
    const { checks: passed, reasons } = toldOf(found);
    if (reasons !== undefined)
      return reply.code(503).send({
        status: "unhealthy",
        error: found.findings.jail.ok ? "upstream_unavailable" : "sandbox_setup_failed",
        message: Object.values(reasons).join("; "),
        checks: passed,
        reasons,
      });
    return {
      status: "healthy",
      workspace_root: WORKSPACE,
      slots: runner.counts(),
      running: runner.runMetrics.running(),
      time: new Date().toISOString(),
      checks: passed,
    };
  });
  const limitsOf = (language: string) =>
    toldLimits(limitsFor(config, overrides, { language }), outputLimits(config));
  app.get("/api/v2/runtimes", async () => runtimes.list(limitsOf));
}

function executionRoutes(
  app: HttpServer,
  { runs, runMetrics, verifier, log, stopping, tracing }: RunnerApp,
): void {
  const admitted = <T>({ headers, body, id }: FastifyRequest, admit: (presented: Presented) => T): T => {
    try {
      return admit({ headers, body, requestId: id });
    } catch (error) {
      if (isManifestError(error)) runMetrics.began(UNKNOWN_LANGUAGE).ended(MANIFEST_ERROR);
      throw error;
    }
  };
  const callOf = (request: FastifyRequest, reply: FastifyReply, execId: string | null | undefined): Call => {
    const gone = clientGone(reply, new ServiceError("execution_cancelled"));
    const signal = AbortSignal.any([gone, stopping]);
    const { id: requestId, headers, method } = request;
    const trace = tracing?.join("runner.execute", "server", headers, {
      "http.request.method": method,
      "http.route": String(request.routeOptions.url),
    });
    return { requestId, execId: execId ?? undefined, signal, log, trace };
  };
  for (const path of ["/execute", "/api/v2/execute"]) {
    app.post(path, { onRequest: requireJson }, async (request, reply) => {
      const execution = admitted(request, (presented) => verifier.admit(presented));
      const { ptc, exec_id, language } = execution.request;
      const call = callOf(request, reply, ptc?.execution_id ?? exec_id);
      return answerRound(request, reply, (tell) =>
        withRunLine(call, language, () => runs.execute(execution, { ...call, tell })),
      );
    });
  }
  app.post<OfExecution>(
    "/api/v2/executions/:id/resume",
    { onRequest: requireJson },
    async (request, reply) => {
      const { id } = request.params;
      const resume = admitted(request, (presented) => verifier.admitResume(presented, id));
      const call = callOf(request, reply, id);
      return answerRound(request, reply, (tell) =>
        withRunLine(call, undefined, () => runs.resume(resume, { ...call, tell })),
      );
    },
  );
  app.delete<OfExecution>("/api/v2/executions/:id", async (request, reply) => {
    const { id } = request.params;
    admitted(request, (presented) => verifier.admitDiscard(presented, id));
    if (!runs.discard(id)) throw new ServiceError("execution_not_found");
    return reply.code(204).send();
  });
}

interface OfExecution {
  Params: { id: string };
}

const requireJson: onRequestHookHandler = (request, _reply, done) => {
  const type = request.headers["content-type"] ?? "";
  const isJson = /^application\/json\b/i.test(type);
  done(isJson ? undefined : wrongContentType("application/json", type, { status: 415 }));
};
