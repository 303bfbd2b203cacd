/**
 * The runner's routes: admit, call, reply. Called only by the worker, who signs; the port is never published. A caller that closes
 * its connection kills its run.
 */
import { type ExecuteRequest, ServiceError } from "@svc/contracts";
import {
  type Context,
  createHttpServer,
  type FastifyReply,
  type FastifyRequest,
  httpMetrics,
  metricsRoutes,
  type Running,
} from "@svc/service-kit";
import type { onRequestHookHandler } from "fastify";
import { execute } from "./execute.ts";
import { GatewayClient } from "./gateway.ts";
import { Health } from "./health.ts";
import { parseOverrides } from "./limits.ts";
import { Doorkeeper, isManifestError } from "./manifest.ts";
import { runnerMetrics } from "./metrics.ts";
import { Runtimes } from "./runtimes.ts";
import { Slots } from "./slots.ts";

export async function startRunner({ config, log, registry, lifecycle }: Context): Promise<Running> {
  const slots = new Slots({
    total: config.SANDBOX_MAX_CONCURRENT_JOBS,
    queueLimit: config.SANDBOX_QUEUE_LIMIT,
    queueWaitMs: config.SANDBOX_QUEUE_WAIT_MS,
  });
  const runtimes = await Runtimes.load(config);
  const doorkeeper = new Doorkeeper(config, log);
  const gateway = new GatewayClient(`http://${config.SANDBOX_FORWARD_TARGET}`);
  const deps = {
    config,
    overrides: parseOverrides(config.SANDBOX_LIMIT_OVERRIDES),
    runtimes,
    slots,
    gateway,
    metrics: runnerMetrics(registry),
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

  const admitted = ({ headers, body, id }: FastifyRequest): ExecuteRequest => {
    try {
      return doorkeeper.admit({ headers, body, requestId: id });
    } catch (error) {
      // What an unauthentic request says of its language is not believed.
      if (isManifestError(error)) deps.metrics.began("unknown")("manifest_error");
      throw error;
    }
  };
  const handleExecute = async (request: FastifyRequest, reply: FastifyReply) => {
    const execution = admitted(request);
    const left = new AbortController();
    reply.raw.once("close", () => left.abort(new Error("the caller left")));
    return execute(
      execution,
      {
        requestId: request.id,
        signal: AbortSignal.any([left.signal, stopping.signal]),
        log,
      },
      deps,
    );
  };
  for (const path of ["/execute", "/api/v2/execute"])
    app.post(path, { onRequest: requireJson }, handleExecute);

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
      slots: slots.counts,
      time: new Date().toISOString(),
    };
  });
  app.get("/api/v2/runtimes", async () => runtimes.list());

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
      await gateway.close();
    },
  };
}

const requireJson: onRequestHookHandler = (request, _reply, done) => {
  const isJson = /^application\/json\b/i.test(request.headers["content-type"] ?? "");
  done(isJson ? undefined : new ServiceError("invalid_content_type", undefined, { status: 415 }));
};
