/**
 * The life cycle of a process with one or more components: configuration, logs, metrics, signals. `runComponent` is all that a
 * main.ts calls. `runComponents` starts several side by side; each has its own configuration, log and metrics.
 * SIGTERM and SIGINT stop the components in the order of their list, each within its SHUTDOWN_GRACE_MS. A second signal exits
 * at once. An uncaught error stops all components in the same order, each within FAILED_GRACE_MS.
 */
import type { Registry } from "prom-client";
import {
  ConfigError,
  ineffectiveVariables,
  loadConfig,
  misspeltVariables,
  needlessSecrets,
  redactedConfig,
} from "./config/load.ts";
import type { Component } from "./config/types.ts";
import type { Config } from "./config/variables.ts";
import { watchCertificateEnd } from "./http/certificate-end.ts";
import type { Lifecycle } from "./http/server.ts";
import { type TlsIdentity, tlsIdentity } from "./http/tls.ts";
import { createLog, type Log, logWarnings } from "./log.ts";
import { framesOf, loggedError } from "./logged-error.ts";
import { createRegistry } from "./metrics/registry.ts";
import { compileWhatRequestsCall } from "./tiering.ts";
import { startTracing, type Tracing } from "./tracing/tracing.ts";

export interface Context {
  config: Config;
  log: Log;
  registry: Registry;
  lifecycle: Lifecycle;
  /** Absent: it speaks plain HTTP. */
  tls?: TlsIdentity | undefined;
  /** Absent when tracing is off. */
  tracing?: Tracing | undefined;
}

export interface Running {
  /** Finishes or hands back all work and closes everything. Called once. */
  stop: () => Promise<void>;
}

/** One component of a process. */
export interface Part {
  name: Component;
  start: (context: Context) => Promise<Running>;
  /** File descriptor for its log lines; standard output by default. */
  logDescriptor?: number;
}

interface Started {
  context: Context;
  /** Absent until the component has started. */
  running?: Running;
}

const EXIT_CONFIGURATION = 78;
const EXIT_FAILED = 70;
/** Long enough for most runs; a process in an unknown state is not kept for the longest ones. */
const FAILED_GRACE_MS = 5000;
/** Extra time beyond the grace time, after which `stop` should have given up by itself. */
const STOP_MARGIN_MS = 2000;

export function runComponent(name: Component, start: Part["start"]): Promise<void> {
  return runComponents([{ name, start }]);
}

export async function runComponents(parts: readonly Part[]): Promise<void> {
  const contexts = refusingBadConfiguration(parts, () => createContexts(parts));
  if (contexts[0] !== undefined) logWarnings(contexts[0].log);
  const started: Started[] = contexts.map((context) => ({ context }));
  endOnSignalsAndErrors(started);
  compileWhatRequestsCall();
  await Promise.all(parts.map((part, at) => startPart(part, started[at] as Started)));
}

/** Throws a ConfigError with the problems of all parts. */
function createContexts(parts: readonly Part[]): Context[] {
  const problems = new Set<string>();
  const configs = parts.map(({ name }) => {
    try {
      return loadConfig(name, process.env);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
      return undefined;
    }
  });
  if (problems.size > 0) throw new ConfigError([...problems]);
  const names = parts.map(({ name }) => name);
  return parts.map(({ name, logDescriptor }, at) => {
    const config = configs[at] as Config;
    const log = createLog(name, config, logDescriptor);
    log.info({ config: redactedConfig(config), node: process.version }, "starting");
    const needless = needlessSecrets(names, process.env);
    if (needless.length > 0)
      log.warn({ variables: needless }, "ignoring secrets that this component does not use");
    const ineffective = ineffectiveVariables(process.env);
    if (ineffective.length > 0)
      log.warn(
        { variables: ineffective },
        "variables have no effect: what they are about is not offered, or switched off",
      );
    for (const { name, meant } of misspeltVariables(process.env))
      log.warn({ variable: name }, `a variable is not known and has no effect; did you mean ${meant}?`);
    if (isOtherTopology(names, config))
      log.warn("SVC_TOPOLOGY is a setting of ./svc up, and has no effect here");
    return {
      config,
      log,
      registry: createRegistry(config.SVC_BUILD_COMMIT),
      lifecycle: { state: "starting" },
    };
  });
}

/** Ignores the runner and the launcher, which are separate processes in each topology. */
function isOtherTopology(names: readonly Component[], { SVC_TOPOLOGY }: Config): boolean {
  if (names.includes("runner") || names.includes("launcher") || !process.env.SVC_TOPOLOGY) return false;
  return SVC_TOPOLOGY !== (names.length > 1 ? "combined" : "separate");
}

async function startPart(part: Part, started: Started): Promise<void> {
  const { config, log, registry, lifecycle } = started.context;
  try {
    const tls = tlsIdentity(part.name, config, log);
    if (tls !== undefined) watchCertificateEnd(tls, registry, log);
    started.context.tls = tls;
    started.context.tracing = await startTracing(part.name, config, log);
    started.running = await part.start(started.context);
  } catch (error) {
    if (error instanceof ConfigError) refuseConfiguration([part], error);
    // The full message is safe: no caller has sent anything yet, and the operator needs its paths and names.
    log.fatal({ err: loggedError(error, ({ message }) => message) }, "start failed");
    process.exit(1);
  }
  if (lifecycle.state === "starting") lifecycle.state = "running";
  log.info("running");
}

function endOnSignalsAndErrors(started: readonly Started[]): void {
  let isStopping = false;
  const stopAll = async (exitCode: number, limitMs: (graceMs: number) => number): Promise<void> => {
    isStopping = true;
    let inTime = true;
    for (const one of started) {
      inTime = (await stopPart(one, limitMs(one.context.config.SHUTDOWN_GRACE_MS))) && inTime;
    }
    await Promise.all(started.map(({ context }) => context.tracing?.close()));
    process.exit(inTime ? exitCode : exitCode || 1);
  };
  const onSignal = (signal: string): void => {
    if (isStopping) process.exit(1);
    for (const { context } of started) context.log.info({ signal }, "stopping");
    void stopAll(0, (graceMs) => graceMs + STOP_MARGIN_MS);
  };
  const onUncaught = (error: unknown): void => {
    for (const { context } of started)
      context.log.fatal({ err: withoutMessage(error) }, "uncaught error, stopping");
    if (isStopping || started.some(({ running }) => running === undefined)) process.exit(EXIT_FAILED);
    void stopAll(EXIT_FAILED, (graceMs) => Math.min(FAILED_GRACE_MS, graceMs));
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, onSignal);
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, onUncaught);
}

/** Returns whether the component stopped in time. A component that is still starting counts as stopped. */
async function stopPart({ context, running }: Started, limitMs: number): Promise<boolean> {
  const { log, lifecycle } = context;
  lifecycle.state = "stopping";
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), limitMs);
  const stopped = (running?.stop() ?? Promise.resolve())
    .catch((error: unknown) => log.error({ err: error }, "stopping failed"))
    .then(() => true);
  const inTime = await Promise.race([stopped, late.promise]);
  clearTimeout(timer);
  if (inTime) log.info("stopped");
  return inTime;
}

/** Type, code and stack of an error. Leaves out the message, which may quote a caller or a program. */
function withoutMessage(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code } = error as NodeJS.ErrnoException;
  return { type: error.name, code, stack: framesOf(error) };
}

function refusingBadConfiguration<T>(parts: readonly Part[], load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (error instanceof ConfigError) refuseConfiguration(parts, error);
    throw error;
  }
}

/** Also for problems that `start` finds, such as a key file without a key. */
function refuseConfiguration(parts: readonly Part[], error: ConfigError): never {
  process.stderr.write(`${parts.map(({ name }) => name).join(", ")}: ${error.message}\n`);
  process.exit(EXIT_CONFIGURATION);
}
