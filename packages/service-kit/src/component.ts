/**
 * The life of a component: configuration, log, metrics, signals. `runComponent` is the whole of a main.ts.
 * SIGTERM and SIGINT: no new work, `stop` within SHUTDOWN_GRACE_MS, then exit. A second signal exits at once.
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
  process.on("unhandledRejection", (error) => {
    log.fatal({ err: error }, "unhandled rejection");
    process.exit(70);
  });

  let running: Running | undefined;
  const shutdown = async (signal: string): Promise<void> => {
    if (lifecycle.state === "stopping") process.exit(1);
    lifecycle.state = "stopping";
    log.info({ signal }, "stopping");
    setTimeout(() => process.exit(1), config.SHUTDOWN_GRACE_MS + 2000).unref();
    try {
      await running?.stop();
    } catch (error) {
      log.error({ err: error }, "stopping failed");
    }
    log.info("stopped");
    process.exit(0);
  };
  process.on("SIGTERM", () => void shutdown("SIGTERM"));
  process.on("SIGINT", () => void shutdown("SIGINT"));

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

/** `start` may find a configuration wrong as well, such as a key file that holds no key. */
function refuseConfiguration(name: Component, error: ConfigError): never {
  process.stderr.write(`${name}: ${error.message}\n`);
  process.exit(EXIT_CONFIGURATION);
}
