/**
 * Logging: JSON lines on standard output, or on a descriptor. Never code, file contents, names of files, tokens or tool
 * arguments: of an error there is what logged-error.ts says. A line is written before the call returns. A full disk costs lines, and never ends a process.
 */
import { randomUUID } from "node:crypto";
import { type Logger, pino } from "pino";
import { placeOf } from "./config/calls.ts";
import type { Component } from "./config/types.ts";
import type { Config } from "./config/variables.ts";
import { framesOf, loggedError } from "./logged-error.ts";

export type Log = Logger;

const SANDBOX_LEVELS = { DEBUG: "debug", INFO: "info", WARN: "warn", ERROR: "error" } as const;
/** Kept for the next attempt when writing fails; further lines are dropped. */
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
 * Warnings of Node.js and of libraries become lines of the log, where Node would print text. The stack says who caused one;
 * no warning quotes what a caller has sent.
 */
export function logWarnings(log: Log): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning: Error & { code?: string }) => {
    const { name, message, code } = warning;
    log.warn({ warning: name, code, stack: framesOf(warning) }, message);
  });
}
