/**
 * One process of the copy: starts it, restarts it when it dies, and stops it on request. Its output goes directly to its log
 * file. When several components share the process, their logs are descriptors 3 and up, in the order of their list. The
 * process has a session of its own, so Ctrl-C in a terminal reaches only the supervisor.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Component } from "../components.ts";
import { identify, type ProcessIdentity } from "../system/process.ts";
import { logsOf } from "../topology.ts";
import { Backoff } from "./backoff.ts";
import { logPath } from "./logs.ts";
import type { ComponentState } from "./state.ts";

export interface ChildEvents {
  /** The state has changed. */
  changed: () => void;
  /** The process ended without a request to stop. */
  died: (name: string, how: string, restartInMs: number) => void;
}

/** In some containers root lacks the capability for this. There the score stays as it is. */
export function setOomScore(pid: number, score: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(score));
  } catch (error) {
    if (!["EACCES", "EPERM", "ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  }
}

export class Child {
  readonly component: Component;
  readonly #dirs: { runDir: string; logsDir: string };
  readonly #events: ChildEvents;
  readonly #inherited: readonly number[];
  readonly #backoff = new Backoff();
  #process: ChildProcess | undefined;
  #identity: ProcessIdentity | undefined;
  #startedAt = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #restarts = 0;
  #lastExit: string | undefined;
  #stopping = false;

  /** `inherited`: descriptors that each process gets, after the ones of its logs. They stay open here. */
  constructor(
    component: Component,
    dirs: { runDir: string; logsDir: string },
    events: ChildEvents,
    inherited: readonly number[] = [],
  ) {
    this.component = component;
    this.#dirs = dirs;
    this.#events = events;
    this.#inherited = inherited;
  }

  get state(): ComponentState {
    return {
      name: this.component.name,
      restarts: this.#restarts,
      ...(this.#identity === undefined
        ? {}
        : { process: this.#identity, startedAt: new Date(this.#startedAt).toISOString() }),
      ...(this.#lastExit === undefined ? {} : { lastExit: this.#lastExit }),
    };
  }

  start(): void {
    if (this.#stopping || this.#process !== undefined) return;
    const { command, env, name } = this.component;
    const [log = -1, ...further] = logsOf(name).map((log) =>
      openSync(logPath(this.#dirs.logsDir, log), "a", 0o600),
    );
    const child = spawn(command[0] ?? "", command.slice(1), {
      cwd: "/",
      env,
      detached: true,
      stdio: ["ignore", log, log, ...further, ...this.#inherited],
    });
    for (const descriptor of [log, ...further]) closeSync(descriptor);
    this.#process = child;
    this.#startedAt = Date.now();
    if (child.pid !== undefined) {
      this.#identity = identify(child.pid);
      setOomScore(child.pid, this.component.oomScore);
      rmSync(this.#pidFile, { force: true });
      this.writePidFile();
    }
    child.once("error", (error) => this.#ended(error.message));
    child.once("exit", (code, signal) =>
      this.#ended(signal === null ? `exit code ${code}` : `signal ${signal}`),
    );
    this.#events.changed();
  }

  #ended(how: string): void {
    if (this.#process === undefined) return;
    this.#process = undefined;
    this.#identity = undefined;
    this.#lastExit = how;
    rmSync(this.#pidFile, { force: true });
    if (!this.#stopping) {
      const delay = this.#backoff.delay(Date.now() - this.#startedAt);
      this.#restarts++;
      this.#restartTimer = setTimeout(() => this.start(), delay);
      this.#events.died(this.component.name, how, delay);
    }
    this.#events.changed();
  }

  /** Stops the process and cancels any restart. Sends SIGKILL after the grace time; returns false when that was necessary. */
  async stop(graceMs: number): Promise<boolean> {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    const child = this.#process;
    if (child === undefined) return true;
    return new Promise((resolve) => {
      let graceful = true;
      const timer = setTimeout(() => {
        graceful = false;
        child.kill("SIGKILL");
      }, graceMs);
      child.once("exit", () => {
        clearTimeout(timer);
        resolve(graceful);
      });
      child.kill("SIGTERM");
    });
  }

  /** Starts the process again after `stop`. */
  startAgain(): void {
    this.#stopping = false;
    this.start();
  }

  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    this.#process?.kill("SIGKILL");
  }

  /** Writes a pid file for people when a running process has none. On a full disk only the file is lost; the next call writes it. */
  writePidFile(): void {
    if (this.#identity === undefined || existsSync(this.#pidFile)) return;
    try {
      writeFileSync(this.#pidFile, `${this.#identity.pid}\n`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      rmSync(this.#pidFile, { force: true });
    }
  }

  get #pidFile(): string {
    return join(this.#dirs.runDir, `${this.component.name}.pid`);
  }
}
