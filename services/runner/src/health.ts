/**
 * Deep health check: runs `true` in a jail, which really creates and removes a workspace. Fresh results are shared. The check takes a jail beyond
 * those of the slots: a runner whose slots are all busy is healthy.
 */
import { constants } from "node:os";
import { JailError, JailRun } from "@svc/jail-client";
import { type Check, type Config, type Log, retry, shared } from "@svc/service-kit";

/** A result this recent is as good as a new one. */
const FRESH_MS = 1000;
/** Many times what a jail takes on an overloaded machine. */
const PROBE_TIMEOUT_MS = 5000;
const RETRY_MS = 100;
/** The main loop of jaild runs once a second. */
const SILENT_MS = 5000;
/** Short failures do not count: other slots may take over. */
const FAILING_MS = 3000;
const MIB = 2 ** 20;

export class Health {
  readonly #config: Config;
  #provenAt = Number.NEGATIVE_INFINITY;
  readonly #probe = shared(() => this.#run());

  constructor(config: Config) {
    this.#config = config;
  }

  /** Throws when no jail can be made. */
  async check(): Promise<void> {
    if (performance.now() - this.#provenAt < FRESH_MS) return;
    await this.#probe();
  }

  /** At startup: retries until a jail can be made. jaild may start later. */
  async prove(log: Log): Promise<void> {
    await retry(
      () => this.check(),
      (error, failures) => {
        if (failures === 1) log.warn({ err: error }, "no jail can be made yet; trying again until one is");
        return RETRY_MS;
      },
    );
  }

  async #run(): Promise<void> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const jail = await JailRun.open(this.#config.SANDBOX_JAIL_SOCKET, signal);
    try {
      const { silentMs, failingMs } = jail.pulse;
      if (silentMs > SILENT_MS) throw new WeakPulseError("jaild stands still");
      if (failingMs > FAILING_MS)
        throw new WeakPulseError("jaild cannot make further jails; its log says why");
      jail.describe(["/bin/true"], ["PATH=/usr/bin:/bin"], {
        wallMs: PROBE_TIMEOUT_MS,
        cpuMs: 0,
        memoryBytes: 64 * MIB,
        processes: 16,
        openFiles: 64,
        fileBytes: MIB,
        stdoutCap: 1024,
        stderrCap: 1024,
        killFactor: 1,
      });
      await jail.start();
      const { end } = await jail.outcome();
      if (end.cause !== "exited" || end.exitCode !== 0) throw new UnfitImageError(end);
      this.#provenAt = performance.now();
    } finally {
      jail.close();
    }
  }
}

/** jaild still has jails, but makes no new ones. */
class WeakPulseError extends Error {}

class UnfitImageError extends Error {
  constructor(end: { cause: string; exitCode: number; execErrno: number }) {
    super(`true ended with ${JSON.stringify(end)}`);
  }
}

export function jailCheck(health: Health, log: Log): Check {
  return () =>
    health.check().then(
      () => undefined,
      (error: unknown) => {
        log.error({ err: error }, "creating a jail failed");
        return jailReason(error);
      },
    );
}

/** Why no jail could be made, in plain words. */
export function jailReason(error: unknown): string {
  if (error instanceof WeakPulseError) return error.message;
  if (error instanceof UnfitImageError) return "programs of the root image cannot be run";
  if (error instanceof DOMException && error.name === "TimeoutError")
    return `jaild gave no jail within ${PROBE_TIMEOUT_MS / 1000} s`;
  if (!(error instanceof JailError)) return "no jail can be made";
  if (error.kind === "gone")
    return /EMFILE|ENFILE/.test(error.message)
      ? "jaild cannot be reached: no file descriptor is left"
      : "jaild cannot be reached";
  return `jaild cannot make a jail${nameOf(error.errno)}; its log says why`;
}

function nameOf(errno: number | undefined): string {
  const [name] = Object.entries(constants.errno).find(([, value]) => value === errno) ?? [];
  return name === undefined ? "" : ` (${name})`;
}
