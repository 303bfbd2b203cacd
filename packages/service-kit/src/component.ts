/**
 * The life of a component: configuration, log, metrics, signals. `runComponent` is the whole of a main.ts.
 * SIGTERM and SIGINT: no new work, `stop` within SHUTDOWN_GRACE_MS, then exit. A second signal exits at once.
 * An error that nobody caught ends the component as well: what is in work has FAILED_GRACE_MS to finish, nothing new is taken.
 */
import type { Registry } from "prom-client";
import { ConfigError, loadConfig, needlessSecrets, redactedConfig } from "./config/load.ts";
import type { Component } from "./config/types.ts";
import type { Config } from "./config/variables.ts";
import type { Lifecycle } from "./http/server.ts";
import { createLog, type Log } from "./log.ts";
import { returnMemoryWhenQuiet } from "./memory/quiet.ts";
import { createRegistry } from "./metrics.ts";
import { compileWhatRequestsCall } from "./tiering.ts";

export interface Context {
  config: Config;
  log: Log;
  registry: Registry;
  lifecycle: Lifecycle;
}

export interface Running {
  /** Finishes or hands back all work and closes everything. Called once. */
  stop: () => Promise<void>;
}

const EXIT_CONFIGURATION = 78;
const EXIT_FAILED = 70;
/** Long enough for most runs; a component in an unknown state is not kept for the longest ones. */
const FAILED_GRACE_MS = 5000;

export async function runComponent(
  name: Component,
  start: (context: Context) => Promise<Running>,
): Promise<void> {
  let config: Config;
  try {
    config = loadConfig(name, process.env);
  } catch (error) {
    if (error instanceof ConfigError) refuseConfiguration(name, error);
    throw error;
  }
  compileWhatRequestsCall();
  const log = createLog(name, config);
  const lifecycle: Lifecycle = { state: "starting" };
  log.info({ config: redactedConfig(config), node: process.version }, "starting");
  const needless = needlessSecrets(name, process.env);
  if (needless.length > 0) log.warn({ variables: needless }, "given secrets that it does not need");

  let running: Running | undefined;
  const stop = async (exitCode: number, graceMs: number): Promise<void> => {
    lifecycle.state = "stopping";
    setTimeout(() => process.exit(exitCode || 1), graceMs).unref();
    try {
      await running?.stop();
    } catch (error) {
      log.error({ err: error }, "stopping failed");
    }
    log.info("stopped");
    process.exit(exitCode);
  };
  const onSignal = (signal: string): void => {
    if (lifecycle.state === "stopping") process.exit(1);
    log.info({ signal }, "stopping");
    void stop(0, config.SHUTDOWN_GRACE_MS + 2000);
  };
  const onUncaught = (error: unknown): void => {
    log.fatal({ err: withoutMessage(error) }, "uncaught error, stopping");
    if (lifecycle.state !== "running") process.exit(EXIT_FAILED);
    void stop(EXIT_FAILED, Math.min(FAILED_GRACE_MS, config.SHUTDOWN_GRACE_MS));
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, onSignal);
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, onUncaught);

  try {
    running = await start({ config, log, registry: createRegistry(), lifecycle });
  } catch (error) {
    if (error instanceof ConfigError) refuseConfiguration(name, error);
    log.fatal({ err: error }, "start failed");
    process.exit(1);
  }
  if (lifecycle.state === "starting") lifecycle.state = "running";
  returnMemoryWhenQuiet();
  log.info("running");
}

/** Where an error was thrown. Its message may quote what a caller or a program has sent. */
function withoutMessage(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const frames = (error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  const { code } = error as NodeJS.ErrnoException;
  return { type: error.name, code, stack: frames.join("\n") };
}

/** `start` may find a configuration wrong as well, such as a key file that holds no key. */
function refuseConfiguration(name: Component, error: ConfigError): never {
  process.stderr.write(`${name}: ${error.message}\n`);
  process.exit(EXIT_CONFIGURATION);
}
