/**
 * The runner's routes: admit, call, reply. Called only by the worker, who signs; the port is never published. A caller that closes
 * its connection kills its run.
 */
import { ServiceError } from "@svc/contracts";
import {
  type Context,
  clientGone,
  createHttpServer,
  type FastifyReply,
  type FastifyRequest,
  httpMetrics,
  metricsRoutes,
  type Running,
} from "@svc/service-kit";
import type { onRequestHookHandler } from "fastify";
import { inputSource } from "./copies/source.ts";
import { type Call, execute } from "./execute.ts";
import { GatewayClient } from "./gateway.ts";
import { Health } from "./health.ts";
import { parseOverrides } from "./limits.ts";
import { Doorkeeper, isManifestError, type Presented } from "./manifest.ts";
import { runnerMetrics } from "./metrics.ts";
import { ProgramRegistry } from "./programmatic/program-registry.ts";
import { type ProgrammaticDeps, resumeProgram, startProgram } from "./programmatic/rounds.ts";
import { ToolCallClient } from "./programmatic/tool-call-client.ts";
import { ToolDirectories } from "./programmatic/tool-directory.ts";
import { Runtimes } from "./runtimes.ts";
import { Slots } from "./slots.ts";
import { WarmJails } from "./warm/jails.ts";

/** The calls of a paused program end first, in time and as timeouts; its pause ends by itself when nobody tells of that. */
const CALLS_END_MS = 500;

export async function startRunner({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const slots = new Slots({
    total: config.SANDBOX_MAX_CONCURRENT_JOBS,
    queueLimit: config.SANDBOX_QUEUE_LIMIT,
    queueWaitMs: config.SANDBOX_QUEUE_WAIT_MS,
  });
  const runtimes = await Runtimes.load(config);
  const doorkeeper = new Doorkeeper(config, log);
  const target = `http://${config.SANDBOX_FORWARD_TARGET}`;
  const gateway = new GatewayClient(target);
  const metrics = runnerMetrics(registry);
  const mostCalls = config.PTC_MAX_CALLS * (config.SANDBOX_MAX_CONCURRENT_JOBS + config.SANDBOX_MAX_PAUSED);
  const inputs = inputSource(gateway, config, metrics, log);
  const client = new ToolCallClient(target, mostCalls);
  const programs: ProgrammaticDeps["programs"] = new ProgramRegistry(
    {
      maxPaused: config.SANDBOX_MAX_PAUSED,
      maxPerPrincipal: config.SANDBOX_MAX_PAUSED_PER_PRINCIPAL,
      longestPauseMs: config.TOOL_CALL_REQUEST_TIMEOUT + CALLS_END_MS,
    },
    metrics,
    log,
  );
  const overrides = parseOverrides(config.SANDBOX_LIMIT_OVERRIDES);
  const jails = new WarmJails(config, runtimes, overrides, log);
  const deps: ProgrammaticDeps = {
    config,
    overrides,
    runtimes,
    slots,
    gateway,
    inputs,
    metrics,
    jails,
    programs,
    client,
    directories: new ToolDirectories(config.SANDBOX_TOOL_DIRECTORY, config.SANDBOX_TOOL_SOCKET),
  };
  const health = new Health(config);
  const stopping = new AbortController();
  const app = createHttpServer({
    log,
    lifecycle,
    bodyLimit: config.SANDBOX_EXECUTE_BODY_LIMIT,
    metrics: httpMetrics(registry, "svc_sandbox_http"),
    alwaysOn: ["/health", "/metrics"],
  });
  metricsRoutes(app, { registry, token: config.SVC_METRICS_TOKEN });

  const admitted = <T>({ headers, body, id }: FastifyRequest, admit: (presented: Presented) => T): T => {
    try {
      return admit({ headers, body, requestId: id });
    } catch (error) {
      // What an unauthentic request says of its language is not believed.
      if (isManifestError(error)) metrics.began("unknown").ended("manifest_error");
      throw error;
    }
  };
  const callOf = (request: FastifyRequest, reply: FastifyReply): Call => {
    const gone = clientGone(reply, new Error("the caller closed the connection"));
    return { requestId: request.id, signal: AbortSignal.any([gone, stopping.signal]), log };
  };
  for (const path of ["/execute", "/api/v2/execute"]) {
    app.post(path, { onRequest: requireJson }, async (request, reply) => {
      const execution = admitted(request, (presented) => doorkeeper.admit(presented));
      const call = callOf(request, reply);
      const { ptc } = execution.request;
      return ptc == null ? execute(execution.request, call, deps) : startProgram(execution, ptc, call, deps);
    });
  }
  app.post<OfExecution>(
    "/api/v2/executions/:id/resume",
    { onRequest: requireJson },
    async (request, reply) => {
      const { id } = request.params;
      const resume = admitted(request, (presented) => doorkeeper.admitResume(presented, id));
      return resumeProgram(resume, callOf(request, reply), deps);
    },
  );
  app.delete<OfExecution>("/api/v2/executions/:id", async (request, reply) => {
    const { id } = request.params;
    admitted(request, (presented) => doorkeeper.admitDiscard(presented, id));
    if (!programs.discard(id)) throw new ServiceError("execution_not_found");
    return reply.code(204).send();
  });

  app.get("/health", async () => ({ status: "ok" }));
  app.get("/api/v2/health", async (_request, reply) => {
    try {
      await health.check();
    } catch (error) {
      log.error({ err: error }, "no jail can be made");
      return reply
        .code(503)
        .send({ status: "unhealthy", error: "sandbox_setup_failed", message: "No workspace can be made." });
    }
    return {
      status: "healthy",
      workspace_root: "/mnt/data",
      slots: { ...slots.counts, paused: programs.paused },
      time: new Date().toISOString(),
    };
  });
  app.get("/api/v2/runtimes", async () => runtimes.list());

  await health.prove();
  metrics.watchWarm(() => jails.counts());
  jails.start();
  await doorkeeper.opens();
  await app.listen({ port: config.PORT, host: config.RUNNER_HOST });
  return {
    stop: async () => {
      slots.close();
      const closed = app.close();
      const grace = setTimeout(
        () => stopping.abort(new ServiceError("shutting_down")),
        config.SHUTDOWN_GRACE_MS,
      );
      await closed;
      clearTimeout(grace);
      programs.close();
      jails.close();
      inputs.close();
      await Promise.all([gateway.close(), client.close()]);
    },
  };
}

interface OfExecution {
  Params: { id: string };
}

const requireJson: onRequestHookHandler = (request, _reply, done) => {
  const isJson = /^application\/json\b/i.test(request.headers["content-type"] ?? "");
  done(isJson ? undefined : new ServiceError("invalid_content_type", undefined, { status: 415 }));
};
