/** Deep health: a workspace is really made and removed, by running `true` in a jail. Fresh results are shared. */
import { ServiceError } from "@svc/contracts";
import { JailRun } from "@svc/jail-client";
import type { Config } from "@svc/service-kit";
import type { Slots } from "./slots.ts";

/** A proof this young is as good as a new one. */
const FRESH_MS = 1000;
const PROBE_TIMEOUT_MS = 10_000;
const MIB = 2 ** 20;

export class Health {
  readonly #config: Config;
  readonly #slots: Slots;
  #provenAt = Number.NEGATIVE_INFINITY;
  #probe: Promise<void> | undefined;

  constructor(config: Config, slots: Slots) {
    this.#config = config;
    this.#slots = slots;
  }

  /** Throws when no jail can be made. */
  async check(): Promise<void> {
    if (performance.now() - this.#provenAt < FRESH_MS) return;
    this.#probe ??= this.#run().finally(() => {
      this.#probe = undefined;
    });
    await this.#probe;
  }

  async #run(): Promise<void> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const release = await this.#slots.lease(signal);
    try {
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
    } finally {
      release();
    }
  }
}
