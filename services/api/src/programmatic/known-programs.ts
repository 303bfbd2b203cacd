/**
 * Paused programs as this process last saw them. A change built on such a copy takes no look at the store before it: the
 * store refuses it when the copy is not what it holds. A copy decides nothing. Bounded; the oldest goes first.
 */
import type { Program } from "./program.ts";
import type { Known } from "./programs.ts";

const MAX_PROGRAMS = 512;
/** Larger ones are read anew each time. */
const MAX_BYTES = 32 * 1024;

export interface KnownProgram {
  program: Program;
  known: Known;
}

export class KnownPrograms {
  readonly #programs = new Map<string, KnownProgram>();

  take(id: string): KnownProgram | undefined {
    const found = this.#programs.get(id);
    this.#programs.delete(id);
    return found;
  }

  remember(id: string, one: KnownProgram): void {
    this.#programs.delete(id);
    if (one.known.progress.state_bytes > MAX_BYTES) return;
    const [oldest] = this.#programs.keys();
    if (this.#programs.size >= MAX_PROGRAMS && oldest !== undefined) this.#programs.delete(oldest);
    this.#programs.set(id, one);
  }
}
