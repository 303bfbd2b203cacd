/**
 * The runner's routes: admit, call, reply. Called only by the worker, who signs; the port is never published. A caller that closes
 * its connection kills its run.
 */
import { ServiceError } from "@svc/contracts";
import {
  CALLERS,
  type Check,
  type Context,
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
} from "@svc/service-kit";
import type { onRequestHookHandler } from "fastify";
import { limitsFor, toldLimits } from "./admission/limits.ts";
import { isManifestError, type ManifestVerifier, type Presented } from "./admission/manifest.ts";
import { answerRound } from "./event-answer.ts";
import { execute } from "./execution/execute.ts";
import { WORKSPACE } from "./execution/program.ts";
import type { Call } from "./execution/types.ts";
import { gatewayChecks } from "./gateway-checks.ts";
import { type Health, jailReason } from "./health.ts";
import { outputLimits } from "./outputs/limits.ts";
import { type ProgrammaticDeps, resumeProgram, startProgram } from "./programmatic/rounds.ts";
import { withRunLine } from "./run-line.ts";

export interface RunnerApp extends Context {
  deps: ProgrammaticDeps;
  verifier: ManifestVerifier;
  health: Health;
  /** Ends what runs. */
  stopping: AbortSignal;
}

export function buildRunner(runner: RunnerApp): HttpServer {
  const { config, log, registry, lifecycle, tls } = runner;
  const app = createHttpServer({
    log,
    lifecycle,
    tls,
    callers: CALLERS.runner,
    bodyLimit: config.SANDBOX_EXECUTE_BODY_LIMIT,
    metrics: httpMetrics(registry, "svc_sandbox_http"),
    alwaysOn: ["/health", "/api/v2/health", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });
  operationalRoutes(app, runner);
  executionRoutes(app, runner);
  return app;
}

function operationalRoutes(app: HttpServer, { deps, health, log, lifecycle }: RunnerApp): void {
  const jail: Check = () =>
    health.check().then(
      () => undefined,
      (error: unknown) => {
        log.error({ err: error }, "creating a jail failed");
        return jailReason(error);
      },
    );
  const checks = {
    jail,
    ...gatewayChecks(deps.gateway.client),
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
      slots: { ...deps.slots.counts, paused: deps.programs.paused, retained: deps.jails.waiting },
      time: new Date().toISOString(),
      checks: passed,
    };
  });
  const limitsOf = (language: string) =>
    toldLimits(limitsFor(deps.config, deps.overrides, { language }), outputLimits(deps.config));
  app.get("/api/v2/runtimes", async () => deps.runtimes.list(limitsOf));
}

function executionRoutes(app: HttpServer, { deps, verifier, log, stopping, tracing }: RunnerApp): void {
  const admitted = <T>({ headers, body, id }: FastifyRequest, admit: (presented: Presented) => T): T => {
    try {
      return admit({ headers, body, requestId: id });
    } catch (error) {
      // What an unauthentic request says of its language is not believed.
      if (isManifestError(error)) deps.metrics.began("unknown").ended("manifest_error");
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
        withRunLine(call, language, () =>
          ptc == null
            ? execute(execution.request, { ...call, tell }, deps)
            : startProgram(execution, ptc, { ...call, tell }, deps),
        ),
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
        withRunLine(call, undefined, () => resumeProgram(resume, { ...call, tell }, deps)),
      );
    },
  );
  app.delete<OfExecution>("/api/v2/executions/:id", async (request, reply) => {
    const { id } = request.params;
    admitted(request, (presented) => verifier.admitDiscard(presented, id));
    if (!deps.programs.discard(id)) throw new ServiceError("execution_not_found");
    return reply.code(204).send();
  });
}

interface OfExecution {
  Params: { id: string };
}

const requireJson: onRequestHookHandler = (request, _reply, done) => {
  const isJson = /^application\/json\b/i.test(request.headers["content-type"] ?? "");
  done(isJson ? undefined : new ServiceError("invalid_content_type", undefined, { status: 415 }));
};
