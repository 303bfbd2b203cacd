/** Which program a command line of `exec` means. Pure. */
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";

export const STANDARD_INPUT = "-";

/** `path`: of a file, or STANDARD_INPUT. */
export type Program = { code: string } | { path: string };

export function programOf(
  { code, stdin }: { code: string | undefined; stdin: string | undefined },
  [file, unexpected]: readonly string[],
  isTerminal: boolean,
): Program {
  if (unexpected !== undefined)
    throw usage(`unexpected argument ${unexpected}`, "Arguments of the program follow after --.");
  if (code !== undefined && file !== undefined)
    throw usage("-c CODE and FILE exclude each other", "Arguments of the program follow after --.");
  if (code !== undefined) return { code };
  if (file === undefined && isTerminal) throw usage("no program given", "See: ./svc exec --help");
  const path = file ?? STANDARD_INPUT;
  if (path === STANDARD_INPUT && stdin === STANDARD_INPUT)
    throw usage("both program and input cannot come from standard input");
  return { path };
}

function usage(message: string, advice?: string): Problem {
  return new Problem(message, advice, USAGE_EXIT_CODE);
}
