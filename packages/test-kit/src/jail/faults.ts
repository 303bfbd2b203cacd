/** jaild-faults (jail/faults/faults.h): which call of which kind of process fails, and what became of it. */
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Jaild, type JaildOptions } from "./jaild.ts";

export const JAIL = fileURLToPath(new URL("../../../../jail", import.meta.url));
export const FAULTY = join(JAIL, "build/jaild-faults");

const ROLES = ["none", "master", "template", "keeper", "init", "program"] as const;
const HEADER_BYTES = 48;
const TICKET_BYTES = 40;
const TICKETS_MAX = 2048;
const NEXT = 20;

export interface FaultPlan {
  role: (typeof ROLES)[number];
  /** Number of the call that fails for the first ticket; counted from 1. */
  first?: number;
  /** Added for each later ticket. */
  step?: number;
  /** So many tickets have a fault, all later ones none. */
  tickets?: number;
  /** Counts only calls of this name; with `!` before it, all others. */
  only?: string;
  error?: keyof typeof constants.errno;
}

export interface Ticket {
  /** Calls that the process made. */
  calls: number;
  fired: boolean;
  /** The program's own code was about to begin. */
  executed: boolean;
  /** Its keeper took a connection. */
  met: boolean;
  name: string;
}

export function buildFaulty(): void {
  execFileSync("make", ["--silent", "-C", JAIL, "faults"], { stdio: ["ignore", "ignore", "inherit"] });
}

/** What jaild says of each step of step.h when it fails. */
export const STEPS = new Map(
  [...readFileSync(join(JAIL, "src/lib/step.h"), "utf8").matchAll(/X\((\w+), "(.*)"\)/g)].map(
    ([, name = "", text = ""]) => [name, text],
  ),
);

export class Faults {
  readonly #directory = mkdtempSync(join(tmpdir(), "svc-faults-"));
  readonly #file: number;

  private constructor(plan: FaultPlan) {
    this.#file = openSync(join(this.#directory, "plan"), "w+");
    writeSync(this.#file, Buffer.alloc(HEADER_BYTES + TICKET_BYTES * TICKETS_MAX));
    this.write(plan);
  }

  static plan(plan: FaultPlan): Faults {
    return new Faults(plan);
  }

  /** Takes effect at the next ticket. */
  write({ role, first = 1, step = 0, tickets = TICKETS_MAX, only = "", error = "EPERM" }: FaultPlan): void {
    const header = Buffer.alloc(HEADER_BYTES);
    const words = [ROLES.indexOf(role), constants.errno[error], first, step, tickets];
    for (const [index, word] of words.entries()) header.writeUInt32LE(word, 4 * index);
    header.write(only, 24);
    writeSync(this.#file, header.subarray(0, NEXT), 0, NEXT, 0);
    writeSync(this.#file, header.subarray(NEXT + 4), 0, HEADER_BYTES - NEXT - 4, NEXT + 4);
  }

  get options(): Pick<JaildOptions, "binary" | "env"> {
    return { binary: FAULTY, env: { SVC_FAULTS: join(this.#directory, "plan") } };
  }

  start(options: JaildOptions = {}): Promise<Jaild> {
    return Jaild.start({ slots: 1, ...options, ...this.options });
  }

  /** Tickets that were taken. */
  get taken(): number {
    const bytes = Buffer.alloc(4);
    readSync(this.#file, bytes, 0, 4, NEXT);
    return bytes.readUInt32LE();
  }

  ticket(number: number): Ticket {
    const bytes = Buffer.alloc(TICKET_BYTES);
    if (number >= TICKETS_MAX) throw new Error("more tickets than the plan holds");
    readSync(this.#file, bytes, 0, TICKET_BYTES, HEADER_BYTES + TICKET_BYTES * number);
    return {
      calls: bytes.readUInt32LE(0),
      fired: bytes.readUInt32LE(4) === 1,
      executed: bytes.readUInt32LE(8) === 1,
      met: bytes.readUInt32LE(12) === 1,
      name: bytes.toString("latin1", 16).replace(/\0.*/s, ""),
    };
  }

  remove(): void {
    closeSync(this.#file);
    rmSync(this.#directory, { recursive: true });
  }
}
