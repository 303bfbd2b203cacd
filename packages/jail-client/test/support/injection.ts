/** System calls that a process of jaild's makes as if somebody had injected code into it (injector.c). */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Ended by the system call policy. */
export const KILLED = "killed 31";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** Numbers of this machine's system calls, by name. */
const numbers = new Map(
  execFileSync("sh", ["-c", "echo '#include <asm/unistd.h>' | cc -E -dM -"], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => {
      const [, name, number] = /^#define __NR_(\w+) (\d+)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(number)] as const];
    }),
);

export const exists = (call: string) => numbers.has(call);
export const numberOf = (call: string) => numbers.get(call) ?? -1;

export class Injector {
  readonly #directory = mkdtempSync(join(tmpdir(), "svc-injector-"));
  readonly #binary = join(this.#directory, "injector");

  constructor() {
    const source = join(root, "packages/jail-client/test/support/injector.c");
    execFileSync("cc", ["-O1", "-Wall", "-o", this.#binary, source]);
  }

  /** What the call answers, a negative errno, or how it ended the process. A text is written into the process, bytes too. */
  call(pid: number, name: string, ...given: readonly (number | string | Buffer)[]): number | string {
    const words = given.map((word) =>
      typeof word === "number"
        ? `${word}`
        : typeof word === "string"
          ? `=${word}`
          : `#${word.toString("hex")}`,
    );
    const number = numbers.get(name);
    if (number === undefined) throw new Error(`no such system call: ${name}`);
    const said = execFileSync(this.#binary, [`${pid}`, `${number}`, ...words], { encoding: "utf8" }).trim();
    return said.startsWith("killed") ? said : Number(said);
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }
}
