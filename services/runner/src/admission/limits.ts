/** The limits of one run: those of the configuration, overridden by the operator for the language, lowered by the request. Pure. */
import type { ExecuteRequest, LanguageLimits, UsedLimits } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import { EVERY_LANGUAGE, type LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import type { OutputLimits } from "../outputs/outputs.ts";

export interface RunLimits {
  wallMs: number;
  /** CPU time of the whole program; 0: no limit. */
  cpuMs: number;
  memoryBytes: number;
  processes: number;
  openFiles: number;
  fileBytes: number;
  outputCap: number;
  outputKillFactor: number;
}

type LimitedRequest = Pick<
  ExecuteRequest,
  "language" | "run_timeout" | "compile_timeout" | "run_memory_limit" | "ptc"
>;

export function limitsFor(config: Config, overrides: LimitOverrides, request: LimitedRequest): RunLimits {
  const own = { ...overrides[EVERY_LANGUAGE], ...overrides[request.language] };
  // A replayed program needs the time of all its rounds.
  const isReplay = request.ptc?.mode === "replay";
  const wallCeiling = isReplay ? config.JOB_TIMEOUT : (own.run_timeout ?? config.MAX_RUN_TIMEOUT);
  const memoryCeiling = own.run_memory_limit ?? config.SANDBOX_RUN_MEMORY_LIMIT;
  return {
    wallMs: Math.min(request.run_timeout ?? config.SANDBOX_RUN_TIMEOUT, wallCeiling),
    cpuMs: own.run_cpu_time ?? 0,
    memoryBytes: Math.min(request.run_memory_limit ?? memoryCeiling, memoryCeiling),
    processes: own.max_process_count ?? config.SANDBOX_MAX_PROCESS_COUNT,
    openFiles: own.max_open_files ?? config.SANDBOX_MAX_OPEN_FILES,
    fileBytes: own.max_file_size ?? config.SANDBOX_RLIMIT_FSIZE,
    outputCap: own.output_max_size ?? config.SANDBOX_OUTPUT_MAX_SIZE,
    outputKillFactor: config.SANDBOX_OUTPUT_KILL_FACTOR,
  };
}

/** The limits of the compiler. Its time stays within what all deadlines allow for it; CPU time is not limited. */
export function compileLimitsFor(
  config: Config,
  overrides: LimitOverrides,
  request: LimitedRequest,
): RunLimits {
  const own = { ...overrides[EVERY_LANGUAGE], ...overrides[request.language] };
  const times = [config.SANDBOX_COMPILE_TIMEOUT, own.compile_timeout, request.compile_timeout];
  return {
    ...limitsFor(config, overrides, request),
    cpuMs: 0,
    wallMs: Math.min(...times.filter((time) => time != null)),
    memoryBytes: own.compile_memory_limit ?? config.SANDBOX_COMPILE_MEMORY_LIMIT,
  };
}

export function usedLimits({ wallMs, memoryBytes }: RunLimits): UsedLimits {
  return { run_timeout_ms: wallMs, memory_bytes: memoryBytes };
}

/** The limits that callers can read before a run. A file that may not be written is not returned either. */
export function toldLimits(limits: RunLimits, { maxFiles, maxFileBytes }: OutputLimits): LanguageLimits {
  return {
    ...usedLimits(limits),
    output_bytes: limits.outputCap,
    files: maxFiles,
    file_bytes: Math.min(maxFileBytes, limits.fileBytes),
    processes: limits.processes,
  };
}

export function jailLimits(limits: RunLimits) {
  return {
    wallMs: limits.wallMs,
    cpuMs: limits.cpuMs,
    memoryBytes: limits.memoryBytes,
    processes: limits.processes,
    openFiles: limits.openFiles,
    fileBytes: limits.fileBytes,
    stdoutCap: limits.outputCap,
    stderrCap: limits.outputCap,
    killFactor: limits.outputKillFactor,
  };
}
