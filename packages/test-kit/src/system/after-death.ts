/**
 * Cleans up after this process once it has ended, however that happens: on Ctrl-C in a terminal a test has no chance to do so by
 * itself. A shell in a session of its own waits for the end of a pipe.
 */
import { spawn } from "node:child_process";

/** `$what` comes through the pipe: tests that look for leftovers by their command lines do not find the shell. */
const WAIT = `
read -r what
read -r forget && exit
`;

export interface AfterDeathOptions {
  /** A program that runs the shell, whose command line is appended. */
  through?: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** `script`: for sh, with `what` as "$what". What is returned takes it back. */
export function afterDeath(
  script: string,
  what: string,
  { through = [], env = {} }: AfterDeathOptions = {},
): () => void {
  const [file = "", ...args] = [...through, "/bin/sh", "-c", WAIT + script];
  const shell = spawn(file, args, {
    cwd: "/",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env },
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  shell.stdin.write(`${what}\n`);
  return () => shell.stdin.end("forget\n");
}
