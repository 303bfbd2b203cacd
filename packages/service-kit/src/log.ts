/**
 * Logging: JSON lines on standard output or on a file descriptor. They never contain code, file contents, file names, tokens or tool
 * arguments. logged-error.ts decides what they contain of an error. Each call writes its line before it returns.
 * A full disk loses lines, but never ends a process.
 */
import { randomUUID } from "node:crypto";
import { type Logger, pino } from "pino";
import { placeOf } from "./config/calls.ts";
import type { Component } from "./config/types.ts";
import type { Config } from "./config/variables.ts";
import { framesOf, loggedError } from "./logged-error.ts";

export type Log = Logger;

const SANDBOX_LEVELS = { DEBUG: "debug", INFO: "info", WARN: "warn", ERROR: "error" } as const;
/** When writing fails, this much is kept for the next attempt. Further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024;

export function createLog(component: Component, config: Config, descriptor = 1): Log {
  const options = {
    name: config.SERVICE_NAME || component,
    level: placeOf(component) === "runner" ? SANDBOX_LEVELS[config.SANDBOX_LOG_LEVEL] : config.LOG_LEVEL,
    base: {
      name: config.SERVICE_NAME || component,
      instance: config.INSTANCE_ID || randomUUID().slice(0, 8),
    },
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: (error: unknown) => loggedError(error) },
  };
  const destination = pino.destination({ dest: descriptor, sync: true, maxLength: MAX_UNWRITTEN_BYTES });
  destination.on("error", () => undefined);
  return pino(options, destination);
}

/**
 * Logs warnings of Node.js and of libraries as JSON lines; Node would print them as text. The stack shows the cause of a warning.
 * Warnings never quote anything that a caller has sent.
 */
export function logWarnings(log: Log): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning: Error & { code?: string }) => {
    const { name, message, code } = warning;
    log.warn({ warning: name, code, stack: framesOf(warning) }, message);
  });
}
