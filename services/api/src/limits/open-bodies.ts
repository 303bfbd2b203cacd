/**
 * Counts the bodies that a principal is sending to this process, where only the body tells what a request is: until then
 * it takes no slot, and must not hold memory and connections without bound meanwhile.
 */
export class OpenBodies {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  /** `most`: of one principal at the same time. */
  constructor(most: number) {
    this.#most = most;
  }

  /** To be called once the body is there or given up; undefined when there are too many. */
  enter(caller: string): (() => void) | undefined {
    const open = this.#open.get(caller) ?? 0;
    if (open >= this.#most) return undefined;
    this.#open.set(caller, open + 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#leave(caller);
      isOpen = false;
    };
  }

  #leave(caller: string): void {
    const open = (this.#open.get(caller) ?? 0) - 1;
    if (open > 0) this.#open.set(caller, open);
    else this.#open.delete(caller);
  }
}
