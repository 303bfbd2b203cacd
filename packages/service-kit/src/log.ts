/** Logging: JSON lines on standard output, or on a descriptor. Never code, file contents, tokens or tool arguments. */
import { randomUUID } from "node:crypto";
import { type Logger, pino } from "pino";
import type { Config } from "./config/variables.ts";

export type Log = Logger;

const SANDBOX_LEVELS = { DEBUG: "debug", INFO: "info", WARN: "warn", ERROR: "error" } as const;

export function createLog(component: string, config: Config, descriptor = 1): Log {
  const options = {
    name: config.SERVICE_NAME || component,
    level: component === "runner" ? SANDBOX_LEVELS[config.SANDBOX_LOG_LEVEL] : config.LOG_LEVEL,
    base: {
      name: config.SERVICE_NAME || component,
      instance: config.INSTANCE_ID || randomUUID().slice(0, 8),
    },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  return pino(options, pino.destination(descriptor));
}
