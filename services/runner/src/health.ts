/**
 * Deep health: a workspace is really made and removed, by running `true` in a jail. Fresh results are shared.
 * It takes a jail beside the slots': a runner whose slots are all busy is healthy.
 */
import { ServiceError } from "@svc/contracts";
import { JailRun } from "@svc/jail-client";
import { type Config, retry } from "@svc/service-kit";

/** A proof this young is as good as a new one. */
const FRESH_MS = 1000;
const PROBE_TIMEOUT_MS = 10_000;
/** How long the first jail may take: jaild may start at the same time. */
const FIRST_MS = 10_000;
const RETRY_MS = 100;
const MIB = 2 ** 20;

export class Health {
  readonly #config: Config;
  #provenAt = Number.NEGATIVE_INFINITY;
  #probe: Promise<void> | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Throws when no jail can be made. */
  async check(): Promise<void> {
    if (performance.now() - this.#provenAt < FRESH_MS) return;
    this.#probe ??= this.#run().finally(() => {
      this.#probe = undefined;
    });
    await this.#probe;
  }

  /** At the start. Throws when no jail can be made in time: a runner without one is not to be called healthy. */
  async prove(): Promise<void> {
    const until = performance.now() + FIRST_MS;
    await retry(
      () => this.check(),
      (error) => {
        if (performance.now() > until) throw new Error("no jail can be made", { cause: error });
        return RETRY_MS;
      },
    );
  }

  async #run(): Promise<void> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const jail = await JailRun.open(this.#config.SANDBOX_JAIL_SOCKET, signal);
    try {
      jail.describe(["/bin/true"], ["PATH=/usr/bin:/bin"], {
        wallMs: 5000,
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
      if (end.cause !== "exited" || end.exitCode !== 0) throw new ServiceError("sandbox_setup_failed");
      this.#provenAt = performance.now();
    } finally {
      jail.close();
    }
  }
}
