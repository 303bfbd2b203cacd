/**
 * Checks whether the memory of this machine is enough for the slots: the worst case of one slot, its file systems included,
 * times the number of active slots. All jails together get the machine's memory minus a reserve, so a shortage of memory
 * hits jails and not the components. Pure, except that it reads the manifest of the image.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "./instance.ts";
import { Problem } from "./problem.ts";
import { type Environment, settingOf } from "./settings.ts";
import { usesMicrovms } from "./topology.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Size of /dev/shm in a jail, as jaild sets it. */
const SHM_BYTES = 64 * MIB;
/** Reserve, as a share of the machine's memory. While less than this is available, paused programs are evicted. */
const RESERVE_SHARE = 0.1;
/**
 * Reserve for the components and the system, which take about 600 MiB under load. A small machine reserves a quarter of its
 * memory at most.
 */
const RESERVE_BYTES = GIB;
const RESERVE_MOST_SHARE = 0.25;

/** The memory that all jails together may take. */
export function memoryOfJails(totalBytes: number): number {
  const least = Math.min(RESERVE_BYTES, RESERVE_MOST_SHARE * totalBytes);
  return Math.floor(totalBytes - Math.max(least, RESERVE_SHARE * totalBytes));
}

/** Processes that jaild needs for a slot, in addition to the program's own processes. */
const PROCESSES_OF_SLOT = 8;
/** The largest number that the kernel accepts. */
const MOST_PROCESSES = 4_194_304;

/** The limit of processes and threads for all jails together: the limit of one slot times the number of slots. */
export function processesOfJails(slots: number, caller: Environment): number {
  const overrides = Object.values(settingOf("SANDBOX_LIMIT_OVERRIDES", caller));
  const own = overrides.map(({ max_process_count: count }) => count ?? 0);
  const most = Math.max(settingOf("SANDBOX_MAX_PROCESS_COUNT", caller), ...own);
  return Math.min(slots * (most + PROCESSES_OF_SLOT), MOST_PROCESSES);
}

/** An installed language. A compiled language has two memory limits: one for the compiler and one for the run. */
export interface Language {
  language: string;
  compile?: unknown;
}

/** The most memory that can be charged to one slot. */
export function slotBytes(caller: Environment, languages: readonly Language[]): number {
  const overrides = settingOf("SANDBOX_LIMIT_OVERRIDES", caller);
  const run = settingOf("SANDBOX_RUN_MEMORY_LIMIT", caller);
  const compile = settingOf("SANDBOX_COMPILE_MEMORY_LIMIT", caller);
  const limits = languages.flatMap(({ language, compile: isCompiled }) => {
    const own = { ...overrides["*"], ...overrides[language] };
    const ownRun = own.run_memory_limit ?? run;
    return isCompiled === undefined ? [ownRun] : [ownRun, own.compile_memory_limit ?? compile];
  });
  const files =
    settingOf("SANDBOX_WORKSPACE_MAX_BYTES", caller) + settingOf("SANDBOX_TMP_MAX_BYTES", caller) + SHM_BYTES;
  return Math.max(run, ...limits) + files;
}

/** Memory that QEMU itself takes, including code that it has translated. */
export const MICROVM_OVERHEAD_MIB = 256;

/** The most memory of this machine that a microVM takes. Each program has a microVM of its own. */
export function microvmBytes(caller: Environment): number {
  return (settingOf("LAUNCHER_RAM_MIB", caller) + MICROVM_OVERHEAD_MIB) * MIB;
}

export interface Machine {
  cores: number;
  /** Memory that this process and its children may use. */
  memoryBytes: number;
}

/**
 * The memory that all microVMs together may take when LAUNCHER_MEMORY_MIB is not set. Leaves room for the saved microVM that
 * others start from.
 */
export function memoryOfMicrovms(memoryBytes: number, ramMib: number): number {
  return Math.max(0, memoryOfJails(memoryBytes) - ramMib * MIB);
}

/** Two for each processor, because programs also wait for their files and tools. A small machine still runs several. */
const JOBS_PER_CORE = 2;
const LEAST_JOBS = 4;
/** The maximum of SANDBOX_MAX_CONCURRENT_JOBS. */
const MOST_JOBS = 512;

export interface Capacity {
  /** Programs that may run at once. */
  jobs: number;
  /**
   * The number that the operator set, or else the number that the processors allow. Larger than `jobs` when it does not fit.
   */
  wanted: number;
  isSet: boolean;
  /** Each program has a microVM of its own. */
  inMicrovms: boolean;
  slotBytes: number;
  jailsBytes: number;
  totalBytes: number;
}

export function capacityOf(machine: Machine, caller: Environment, languages: readonly Language[]): Capacity {
  const { cores, memoryBytes } = machine;
  const isSet = Boolean(caller.SANDBOX_MAX_CONCURRENT_JOBS);
  const byCores = Math.min(Math.max(LEAST_JOBS, JOBS_PER_CORE * cores), MOST_JOBS);
  const wanted = isSet ? settingOf("SANDBOX_MAX_CONCURRENT_JOBS", caller) : byCores;
  const inMicrovms = usesMicrovms(caller);
  const slot = inMicrovms ? microvmBytes(caller) : slotBytes(caller, languages);
  const jailsBytes = inMicrovms ? microvmsBytes(memoryBytes, caller) : memoryOfJails(memoryBytes);
  return {
    jobs: Math.min(wanted, Math.floor(jailsBytes / slot)),
    wanted,
    isSet,
    inMicrovms,
    slotBytes: slot,
    jailsBytes,
    totalBytes: memoryBytes,
  };
}

function microvmsBytes(memoryBytes: number, caller: Environment): number {
  const set = settingOf("LAUNCHER_MEMORY_MIB", caller) * MIB;
  return set || memoryOfMicrovms(memoryBytes, settingOf("LAUNCHER_RAM_MIB", caller));
}

/** The languages of the image; none when the image is not built yet. */
export function languagesOf({ image }: Pick<Instance, "image">): Language[] {
  const manifest = join(image, "runtimes.json");
  if (!existsSync(manifest)) return [];
  const text = readFileSync(manifest, "utf8");
  return (JSON.parse(text) as { runtimes: Language[] }).runtimes;
}

const gib = (bytes: number) => `${(bytes / GIB).toFixed(1)} GiB`;

/** Says in numbers what does not fit; undefined when everything fits. */
export function shortageOf(capacity: Capacity): { message: string; advice: string } | undefined {
  const { jobs, wanted, inMicrovms, slotBytes: slot, jailsBytes, totalBytes } = capacity;
  if (jobs >= wanted) return undefined;
  const [each, all, most] = [gib(slot), gib(wanted * slot), `${gib(jailsBytes)} of ${gib(totalBytes)}`];
  const message = inMicrovms
    ? `${wanted} programs at once may take ${all} (${each} each with its microVM), and microVMs get ${most}`
    : `${wanted} programs at once may take ${all} (${each} each with its files), and jails get ${most}`;
  const fewer = jobs > 0 ? `SANDBOX_MAX_CONCURRENT_JOBS=${jobs}, or lower ` : "Lower ";
  return {
    message,
    advice: inMicrovms
      ? `${fewer}LAUNCHER_RAM_MIB (docs/microvm.md).`
      : `${fewer}SANDBOX_RUN_MEMORY_LIMIT, SANDBOX_WORKSPACE_MAX_BYTES or SANDBOX_TMP_MAX_BYTES (docs/configuration.md).`,
  };
}

/**
 * Returns the number of slots that fit, with a notice when that is fewer than the processors would allow. Throws a Problem
 * when the number that the operator set does not fit, or when not even one slot fits.
 */
export function fitted(capacity: Capacity): { jobs: number; notice?: string } {
  const { jobs, wanted, isSet } = capacity;
  const shortage = shortageOf(capacity);
  if (shortage === undefined) return { jobs };
  if (isSet || jobs === 0) throw new Problem(shortage.message, shortage.advice);
  return { jobs, notice: `SANDBOX_MAX_CONCURRENT_JOBS is ${jobs}, not ${wanted}: ${shortage.message}` };
}
