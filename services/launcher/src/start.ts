/**
 * Starts the launcher. It serves the runner's routes, but runs each program in a guest instead of a jail on this machine. It holds the keys that
 * a runner holds.
 */

import { join } from "node:path";
import { memoryOfMicrovms } from "@svc/cli/capacity";
import { type Chosen, chooseAccelerator } from "@svc/cli/microvm/accelerator";
import { Problem } from "@svc/cli/problem";
import { totalMemory } from "@svc/cli/system/memory";
import { ServiceError } from "@svc/contracts";
import { ManifestVerifier } from "@svc/runner/admission/manifest";
import { Slots } from "@svc/runner/admission/slots";
import { Runtimes } from "@svc/runner/execution/runtimes";
import { GatewayClient } from "@svc/runner/gateway";
import { runnerMetrics } from "@svc/runner/metrics";
import { ProgramRegistry } from "@svc/runner/programmatic/program-registry";
import { buildRunner } from "@svc/runner/routes";
import { CALLS_END_MS } from "@svc/runner/start";
import { type Config, ConfigError, type Context, listenWhen, type Running } from "@svc/service-kit";
import type { HeldGuest } from "./execution/held-guest.ts";
import { GuestRuns } from "./execution/runs.ts";
import { guestCapacity } from "./guests/capacity.ts";
import { GuestFactory } from "./guests/factory.ts";
import type { Guest } from "./guests/guest.ts";
import { checkImage, type HeldImage, holdImage } from "./guests/image.ts";
import { Pool } from "./guests/pool.ts";
import { guestMetrics } from "./metrics.ts";

const MIB = 2 ** 20;
/** How many guests boot at once. More would slow each other down. */
const BOOTING = 2;

export async function startLauncher(context: Context): Promise<Running> {
  const image = holdImage(context.config.LAUNCHER_ROOTFS);
  try {
    await checkImage(image.folder);
    return await start(context, image);
  } catch (error) {
    image.release();
    throw error;
  }
}

async function start(context: Context, image: HeldImage): Promise<Running> {
  const { config, log } = context;
  const deps = await createDeps(context, image);
  const { factory, pool, slots, programs } = deps;
  const verifier = new ManifestVerifier(config, log);
  const stopping = new AbortController();
  const app = buildRunner({
    ...context,
    ...deps,
    verifier,
    runs: new GuestRuns(deps),
    jail: () => pool.problem,
    counts: () => ({ ...slots.counts, paused: programs.paused, retained: pool.counts.ready }),
    stopping: stopping.signal,
  });
  const started = (config.LAUNCHER_SNAPSHOT ? factory.prepare() : Promise.resolve()).then(() => pool.start());
  await listenWhen(Promise.all([started, verifier.opens()]), () =>
    app.listen({ port: config.PORT, host: config.RUNNER_HOST }),
  );
  return {
    stop: async () => {
      slots.close();
      const closed = app.close();
      const grace = setTimeout(
        () => stopping.abort(new ServiceError("sandbox_execution_failed")),
        config.SHUTDOWN_GRACE_MS,
      );
      await closed;
      clearTimeout(grace);
      programs.close();
      await Promise.all([pool.close(), deps.gateway.close()]);
      factory.close();
      image.release();
    },
  };
}

async function createDeps(context: Context, { folder }: HeldImage) {
  const { config, log, registry, tls } = context;
  const capacity = guestCapacity(
    config,
    Math.floor(memoryOfMicrovms(totalMemory(), config.LAUNCHER_RAM_MIB) / MIB),
  );
  log.info(capacity, "microVMs that fit into the memory");
  const runtimes = await Runtimes.load(config);
  const runMetrics = runnerMetrics(registry, runtimes.languages);
  const factory = await createFactory(context, folder, runtimes.languages);
  const slots = new Slots({
    total: capacity.slots,
    queueLimit: config.SANDBOX_QUEUE_LIMIT,
    queueWaitMs: config.SANDBOX_QUEUE_WAIT_MS,
  });
  const limits = {
    maxPaused: capacity.paused,
    maxPerPrincipal: config.SANDBOX_MAX_PAUSED_PER_PRINCIPAL,
    longestPauseMs: config.TOOL_CALL_REQUEST_TIMEOUT + CALLS_END_MS,
  };
  const programs = new ProgramRegistry<HeldGuest>(limits, runMetrics, log);
  runMetrics.watchExecutions(() => ({ slots: slots.counts, paused: programs.paused }));
  return {
    config,
    overrides: config.SANDBOX_LIMIT_OVERRIDES,
    runtimes,
    gateway: new GatewayClient(`${tls ? "https" : "http"}://${config.SANDBOX_FORWARD_TARGET}`, tls),
    factory,
    pool: createPool(context, factory, capacity.most),
    slots,
    programs,
    runMetrics,
  };
}

async function createFactory(
  { config, log, tls }: Context,
  image: string,
  languages: readonly string[],
): Promise<GuestFactory> {
  const chosen = await chosenAccelerator(config.LAUNCHER_ACCEL, image);
  if (chosen.accelerator === "kvm") log.info("microVMs run by KVM: a kernel was booted with it");
  else
    log.warn({ reason: chosen.warning }, "microVMs run on an emulated processor, which is many times slower");
  return new GuestFactory({ config, image, languages, chosen, log, tls });
}

/** Throws a ConfigError when KVM is required but does not work: a restart would find the same machine. */
async function chosenAccelerator(wanted: Config["LAUNCHER_ACCEL"], image: string): Promise<Chosen> {
  try {
    return await chooseAccelerator(wanted, join(image, "vmlinuz"));
  } catch (error) {
    if (error instanceof Problem) throw new ConfigError([`${error.message}. ${error.advice}`]);
    throw error;
  }
}

/** Share of the maximum age after which an unused guest is replaced, so that it does not grow too old while it waits for a run. */
const UNUSED_SHARE = 0.9;
/** Less than ten minutes: at that age a guest's runner would replace its warm interpreters (services/runner/src/warm/jails.ts). */
const MAX_UNUSED_MS = 540_000;

function maxUnusedMs({ LAUNCHER_SNAPSHOT, LAUNCHER_VM_MAX_AGE_SECONDS }: Config): number {
  const byAge = UNUSED_SHARE * LAUNCHER_VM_MAX_AGE_SECONDS * 1000;
  return LAUNCHER_SNAPSHOT ? Math.min(MAX_UNUSED_MS, byAge) : byAge;
}

/** Failed boots in a row after which the snapshot is given up. One or two may fail because the machine is short of memory or time. */
const DISTRUST_AFTER = 3;

function createPool({ config, log, registry }: Context, factory: GuestFactory, most: number): Pool<Guest> {
  const metrics = guestMetrics(registry);
  /** Failed boots in a row. */
  let failures = 0;
  const pool = new Pool<Guest>({
    boot: async () => factory.boot(),
    most,
    ahead: config.LAUNCHER_POOL_SIZE,
    booting: BOOTING,
    runsPerGuest: config.LAUNCHER_RUNS_PER_VM,
    maxAgeMs: config.LAUNCHER_VM_MAX_AGE_SECONDS * 1000,
    maxUnusedMs: maxUnusedMs(config),
    waitMs: config.SANDBOX_QUEUE_WAIT_MS,
    onReady: (bootMs) => {
      failures = 0;
      metrics.ready(bootMs);
    },
    onEnd: (cause) => {
      metrics.ended(cause);
      if (cause === "boot" && ++failures >= DISTRUST_AFTER) factory.distrustSnapshot();
    },
    log,
  });
  metrics.watch(() => pool.counts);
  return pool;
}
