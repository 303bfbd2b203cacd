/** Descriptors that a process inherited from its parent. */
import { closeSync, readdirSync, readFileSync } from "node:fs";

const LAST_STANDARD = 2;
const O_CLOEXEC = 0o2000000;

/**
 * Closes every descriptor above the standard ones that a child would inherit. Node opens its own descriptors with O_CLOEXEC,
 * so these come from the caller.
 */
export function closeInherited(): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const descriptor = Number(name);
    if (descriptor > LAST_STANDARD && isInheritable(descriptor)) closeSync(descriptor);
  }
}

function isInheritable(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false;
  }
}
