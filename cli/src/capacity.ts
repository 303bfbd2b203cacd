/**
 * Whether the memory of this machine is enough for the slots: what each may take at worst, its file systems included, times
 * how many are active at once. All jails together get no more than the machine has but for a reserve, so that a shortage is
 * theirs. Pure but for the manifest of the image.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "./instance.ts";
import { Problem } from "./problem.ts";
import { type Environment, settingOf } from "./settings.ts";
import { usesMicrovms } from "./topology.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** jaild's size of /dev/shm in a jail. */
const SHM_BYTES = 64 * MIB;
/** Of the machine's memory. Paused programs go while less than this is available. */
const RESERVE_SHARE = 0.1;
/** For the components and the system, which take some 600 MiB under load; a small machine gives a quarter. */
const RESERVE_BYTES = GIB;
const RESERVE_MOST_SHARE = 0.25;

/** What all jails together may take. */
export function memoryOfJails(totalBytes: number): number {
  const least = Math.min(RESERVE_BYTES, RESERVE_MOST_SHARE * totalBytes);
  return Math.floor(totalBytes - Math.max(least, RESERVE_SHARE * totalBytes));
}

/** What jaild needs for a slot besides the program's own processes. */
const PROCESSES_OF_SLOT = 8;
/** The most that the kernel takes. */
const MOST_PROCESSES = 4_194_304;

/** Processes and threads of all jails together: as many as each slot may have. */
export function processesOfJails(slots: number, caller: Environment): number {
  const overrides = Object.values(settingOf("SANDBOX_LIMIT_OVERRIDES", caller));
  const own = overrides.map(({ max_process_count: count }) => count ?? 0);
  const most = Math.max(settingOf("SANDBOX_MAX_PROCESS_COUNT", caller), ...own);
  return Math.min(slots * (most + PROCESSES_OF_SLOT), MOST_PROCESSES);
}

/** Languages that are installed; those that are compiled have two limits. */
export interface Language {
  language: string;
  compile?: unknown;
}

/** The most that one slot may charge. */
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

/** QEMU's own, with code that it has translated. */
export const MICROVM_OVERHEAD_MIB = 256;

/** The most that a microVM takes of this machine. A program has a microVM of its own. */
export function microvmBytes(caller: Environment): number {
  return (settingOf("LAUNCHER_RAM_MIB", caller) + MICROVM_OVERHEAD_MIB) * MIB;
}

export interface Machine {
  cores: number;
  /** That this process and its children may use. */
  memoryBytes: number;
}

/** What all microVMs together may take where nothing is set, beside the saved one. */
export function memoryOfMicrovms(memoryBytes: number, ramMib: number): number {
  return Math.max(0, memoryOfJails(memoryBytes) - ramMib * MIB);
}

/** Two for each processor: programs wait for their files and tools, too. A small machine still runs several. */
const JOBS_PER_CORE = 2;
const LEAST_JOBS = 4;
/** Of the variable. */
const MOST_JOBS = 512;

export interface Capacity {
  /** Programs that may run at once. */
  jobs: number;
  /** As asked for, or by the processors; more than `jobs` when that does not fit. */
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

/** Of the image; none where it is not built yet. */
export function languagesOf({ image }: Pick<Instance, "image">): Language[] {
  const manifest = join(image, "runtimes.json");
  if (!existsSync(manifest)) return [];
  const text = readFileSync(manifest, "utf8");
  return (JSON.parse(text) as { runtimes: Language[] }).runtimes;
}

const gib = (bytes: number) => `${(bytes / GIB).toFixed(1)} GiB`;

/** What does not fit, in numbers; undefined when all does. */
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
 * As many slots as fit, and a line that says so when they are fewer than the processors would allow. What somebody set and
 * does not fit is a Problem, and so is a single slot that does not.
 */
export function fitted(capacity: Capacity): { jobs: number; notice?: string } {
  const { jobs, wanted, isSet } = capacity;
  const shortage = shortageOf(capacity);
  if (shortage === undefined) return { jobs };
  if (isSet || jobs === 0) throw new Problem(shortage.message, shortage.advice);
  return { jobs, notice: `SANDBOX_MAX_CONCURRENT_JOBS is ${jobs}, not ${wanted}: ${shortage.message}` };
}
