/** Starts the runner: its slots, its jails, its connections, its port. */
import { ServiceError } from "@svc/contracts";
import { type Context, listenWhen, type Running } from "@svc/service-kit";
import { ManifestVerifier } from "./admission/manifest.ts";
import { Slots } from "./admission/slots.ts";
import { execute } from "./execution/execute.ts";
import { Runtimes } from "./execution/runtimes.ts";
import { GatewayClient } from "./gateway.ts";
import { Health, jailCheck } from "./health.ts";
import { inputSource } from "./inputs/source.ts";
import { runnerMetrics } from "./metrics.ts";
import { ProgramRegistry } from "./programmatic/program-registry.ts";
import { type ProgrammaticDeps, resumeProgram, startProgram } from "./programmatic/rounds.ts";
import { ToolCallClient } from "./programmatic/tool-call-client.ts";
import { ToolDirectories } from "./programmatic/tool-directory.ts";
import { buildRunner, type Runs } from "./routes.ts";
import { WarmJails } from "./warm/jails.ts";

/** How long a paused program outlives its calls: they end first, as timeouts. Without a resume, the pause then ends by itself. */
export const CALLS_END_MS = 500;

/** `mayEnd`: the runner may be stopped after any answer, as in a microVM. */
export async function startRunner(
  context: Context,
  { mayEnd = false }: Partial<Pick<ProgrammaticDeps, "mayEnd">> = {},
): Promise<Running> {
  const { config } = context;
  const deps = { ...(await createDeps(context)), mayEnd };
  const verifier = new ManifestVerifier(config, context.log);
  const health = new Health(config);
  const stopping = new AbortController();
  const app = buildRunner({
    ...context,
    ...deps,
    runMetrics: deps.metrics,
    verifier,
    runs: runsInJails(deps),
    jail: jailCheck(health, context.log),
    counts: () => ({ ...deps.slots.counts, paused: deps.programs.paused, retained: deps.jails.waiting }),
    stopping: stopping.signal,
  });
  deps.metrics.watchExecutions(() => ({ slots: deps.slots.counts, paused: deps.programs.paused }));
  deps.metrics.watchWarm(() => deps.jails.counts());
  const proven = health.prove(context.log).then(() => deps.jails.start());
  await listenWhen(Promise.all([proven, verifier.opens()]), () =>
    app.listen({ port: config.PORT, host: config.RUNNER_HOST }),
  );
  return {
    stop: async () => {
      deps.slots.close();
      const closed = app.close();
      // A run that is aborted here may have begun: `shutting_down` means that it certainly has not.
      const grace = setTimeout(
        () => stopping.abort(new ServiceError("sandbox_execution_failed")),
        config.SHUTDOWN_GRACE_MS,
      );
      await closed;
      clearTimeout(grace);
      deps.programs.close();
      deps.jails.close();
      deps.inputs.close();
      await Promise.all([deps.gateway.close(), deps.client.close()]);
    },
  };
}

function runsInJails(deps: ProgrammaticDeps): Runs {
  return {
    execute: (admitted, call) => {
      const { request } = admitted;
      return request.ptc == null
        ? execute(request, call, deps)
        : startProgram(admitted, request.ptc, call, deps);
    },
    resume: (request, call) => resumeProgram(request, call, deps),
    discard: (executionId) => deps.programs.discard(executionId),
  };
}

async function createDeps({
  config,
  log,
  registry,
  tls,
}: Context): Promise<Omit<ProgrammaticDeps, "mayEnd">> {
  const runtimes = await Runtimes.load(config);
  const target = `${tls ? "https" : "http"}://${config.SANDBOX_FORWARD_TARGET}`;
  const gateway = new GatewayClient(target, tls);
  const metrics = runnerMetrics(registry, runtimes.languages);
  const mostCalls = config.PTC_MAX_CALLS * (config.SANDBOX_MAX_CONCURRENT_JOBS + config.SANDBOX_MAX_PAUSED);
  const overrides = config.SANDBOX_LIMIT_OVERRIDES;
  return {
    config,
    overrides,
    runtimes,
    slots: new Slots({
      total: config.SANDBOX_MAX_CONCURRENT_JOBS,
      queueLimit: config.SANDBOX_QUEUE_LIMIT,
      queueWaitMs: config.SANDBOX_QUEUE_WAIT_MS,
    }),
    gateway,
    inputs: inputSource(gateway, config, metrics, log),
    metrics,
    jails: new WarmJails(config, runtimes, overrides, log),
    log,
    programs: new ProgramRegistry(
      {
        maxPaused: config.SANDBOX_MAX_PAUSED,
        maxPerPrincipal: config.SANDBOX_MAX_PAUSED_PER_PRINCIPAL,
        longestPauseMs: config.TOOL_CALL_REQUEST_TIMEOUT + CALLS_END_MS,
      },
      metrics,
      log,
    ),
    client: new ToolCallClient(target, mostCalls, tls),
    directories: new ToolDirectories(config.SANDBOX_TOOL_DIRECTORY, config.SANDBOX_TOOL_SOCKET),
  };
}
