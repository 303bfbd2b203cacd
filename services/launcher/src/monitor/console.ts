/** Splits a guest's console into printable lines, with at most MAX_LINE characters each and at most MAX_LINES in all. The rest is dropped. */
const MAX_LINE = 500;
const MAX_LINES = 400;

export class ConsoleLines {
  #rest = "";
  #lines = 0;
  readonly #onLine: (line: string) => void;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(bytes: Buffer): void {
    if (this.#lines >= MAX_LINES) return;
    const lines = (this.#rest + bytes.toString("latin1")).split("\n");
    this.#rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) {
      const text = line.replace(/[^\x20-\x7e]/g, "").slice(0, MAX_LINE);
      if (text === "" || this.#lines >= MAX_LINES) continue;
      this.#lines += 1;
      this.#onLine(text);
    }
  }
}
