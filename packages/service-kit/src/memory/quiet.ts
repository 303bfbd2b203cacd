/**
 * Gives memory back while a component has nothing to do. V8 lets its heap grow with the work (the young generation alone to
 * 32 MiB) and keeps it until more work comes: an idle process would hold twice what it needs. A component that is quiet
 * right after its start, and later one that is quiet for longer, collects its whole heap (50 to 100 ms) and returns what is
 * free.
 *
 * That costs the next thousand requests up to half as long again: code that V8 has compiled for speed holds some objects
 * weakly and goes with them, and while nobody asks most are garbage. V8 would do the same by itself, eight seconds after the
 * last request; here it does not. Between requests that follow each other within two minutes nothing happens.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { collect } from "./collector.ts";

/** A look that finds less processor time than this share of the time since the last look is a quiet one. */
const QUIET_SHARE = 0.03;
/** Consecutive quiet looks before a collection: among the first looks, when there is no compiled code to lose, and later. */
const AFTER_START = 2;
const AFTER_WORK = 120;
const FIRST_LOOKS = 15;
/** V8's own collections of a process that allocates little; it reads the number each time. */
const NONE_BY_ITSELF = "--memory-reducer-gc-count=0";
/** A heap that has grown less than this is left alone. */
const WORTH_BYTES = 6 * 2 ** 20;
const LOOK_MS = 1000;

/** Called once, when the component runs. Ends with the process and does not keep it alive. */
export function returnMemoryWhenQuiet(lookMs = LOOK_MS): void {
  setFlagsFromString(NONE_BY_ITSELF);
  let looks = 0;
  let quiet = 0;
  let restingBytes = 0;
  let cpu = process.cpuUsage();
  let time = performance.now();
  const look = (): void => {
    const used = process.cpuUsage(cpu);
    const share = (used.user + used.system) / 1000 / (performance.now() - time);
    cpu = process.cpuUsage();
    time = performance.now();
    quiet = share < QUIET_SHARE ? quiet + 1 : 0;
    looks++;
    const isStart = restingBytes === 0 && looks <= FIRST_LOOKS;
    if (quiet < (isStart ? AFTER_START : AFTER_WORK)) return;
    quiet = 0;
    if (heapBytes() - restingBytes < WORTH_BYTES) return;
    collect({ type: "major", flavor: "last-resort" });
    restingBytes = heapBytes();
    cpu = process.cpuUsage();
    time = performance.now();
  };
  setInterval(look, lookMs).unref();
}

function heapBytes(): number {
  return getHeapStatistics().total_physical_size;
}
