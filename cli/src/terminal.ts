/** Terminal output of the commands: colours (only on a terminal, and never with NO_COLOR), and the progress of long steps. */
import type { WriteStream } from "node:tty";

const CODES = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2, bold: 1 } as const;
export type Colour = keyof typeof CODES;

export function paint(stream: WriteStream, colour: Colour, text: string): string {
  const wanted = stream.isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return wanted ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * Makes text of a program or a log safe for a terminal: control characters other than tab and newline are shown as escapes.
 */
export function printable(text: string): string {
  return text.replace(CONTROL, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** How often something happened. */
export const times = (count: number) => (count === 1 ? "once" : `${count} times`);

/** Prints the result of --json: one document on standard output. */
export function printJson(document: unknown): void {
  process.stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
}

const QUIET_MS = 300;
const REDRAW_MS = 100;

/** Receives the latest line of what a step does. */
export type Note = (line: string) => void;

/**
 * Shows numbered steps on stderr. A step that succeeds within 300 ms leaves no line, because it found
 * everything up to date. On a terminal, the line of a step counts its seconds; elsewhere, each note is a line of its own.
 */
export class Progress {
  readonly #total: number;
  #number = 0;

  constructor(total: number) {
    this.#total = total;
  }

  async step<T>(title: string, work: (note: Note) => Promise<T>): Promise<T> {
    const label = `[${++this.#number}/${this.#total}] ${title}`;
    const view = process.stderr.isTTY ? new LiveLine(label) : new PlainLines(label);
    try {
      const result = await work((line) => view.note(line));
      view.end(true);
      return result;
    } catch (error) {
      view.end(false);
      throw error;
    }
  }
}

class PlainLines {
  readonly #label: string;
  readonly #start = performance.now();
  readonly #timer: NodeJS.Timeout;
  #shown = false;
  #early: string[] = [];

  constructor(label: string) {
    this.#label = label;
    this.#timer = setTimeout(() => this.#show(), QUIET_MS);
  }

  #show(): void {
    if (this.#shown) return;
    this.#shown = true;
    process.stderr.write(`${this.#label} …\n`);
    for (const line of this.#early.splice(0)) this.note(line);
  }

  note(line: string): void {
    if (this.#shown) process.stderr.write(`      ${printable(line)}\n`);
    else this.#early.push(line);
  }

  end(good: boolean): void {
    clearTimeout(this.#timer);
    if (!this.#shown && good) return;
    process.stderr.write(`${this.#label}: ${good ? "done" : "failed"} (${seconds(this.#start)})\n`);
  }
}

class LiveLine {
  readonly #label: string;
  readonly #start = performance.now();
  readonly #timer: NodeJS.Timeout;
  #note = "";
  #shown = false;

  constructor(label: string) {
    this.#label = label;
    this.#timer = setInterval(() => {
      if (performance.now() - this.#start >= QUIET_MS) this.#draw();
    }, REDRAW_MS);
  }

  #draw(): void {
    this.#shown = true;
    const text = `${this.#label}  ${seconds(this.#start)}  ${this.#note}`;
    process.stderr.write(`\r\u001b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  note(line: string): void {
    this.#note = printable(line);
  }

  end(good: boolean): void {
    clearInterval(this.#timer);
    if (!this.#shown && good) return;
    const mark = good ? paint(process.stderr, "green", "ok") : paint(process.stderr, "red", "failed");
    process.stderr.write(
      `\r\u001b[K${this.#label}  ${mark} ${paint(process.stderr, "dim", `(${seconds(this.#start)})`)}\n`,
    );
  }
}

function seconds(start: number): string {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}
