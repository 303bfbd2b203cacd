/**
 * Another machine, as far as the network goes: a network namespace that reaches this machine by one link and nothing else, with
 * a list of hosts of its own. It ends with its owner, however that happens: the kernel removes the link with it. Needs root and iproute2.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Said } from "./fresh-clone.ts";

export interface OtherMachine {
  /** Address of this machine as seen from the other one. */
  here: string;
  there: string;
  /** Runs a program there. Never throws for an exit code. */
  run: (command: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Said>;
  /** The command line that runs a program there. */
  command: (command: readonly string[]) => string[];
  remove: () => Promise<void>;
}

/** `names`: host names by which the other machine knows this one. */
export async function startOtherMachine(names: readonly string[]): Promise<OtherMachine> {
  const id = randomBytes(3);
  const [link, peer] = ["a", "b"].map((end) => `svc${id.toString("hex")}${end}`) as [string, string];
  // A net of four addresses in the range for measurements between networks (RFC 2544).
  const address = (host: number) => `198.18.${id[0]}.${((id[1] ?? 0) & ~3) + host}`;
  const [here, there] = [address(1), address(2)];
  const folder = mkdtempSync(join(tmpdir(), "svc-other-"));
  const hosts = join(folder, "hosts");
  writeFileSync(hosts, `127.0.0.1 localhost\n${here} ${names.join(" ")}\n`);
  const holder = spawn(
    "/usr/bin/setpriv",
    [
      ...["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "slave"],
      ...["sh", "-c", 'mount --bind "$0" /etc/hosts && echo ready && exec sleep infinity', hosts],
    ],
    { env: { PATH: process.env.PATH }, stdio: ["ignore", "pipe", "inherit"] },
  );
  const enter = ["nsenter", `--target=${holder.pid}`, "--net", "--mount", "--"];
  const remove = async () => {
    await end(holder);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const early = once(holder, "exit").then(([code]) => {
      throw new Error(`the other machine ended with exit code ${code}`);
    });
    await Promise.race([once(holder.stdout, "data"), early]);
    early.catch(() => undefined);
    ip("link", "add", link, "type", "veth", "peer", "name", peer, "netns", String(holder.pid));
    ip("address", "add", `${here}/30`, "dev", link);
    ip("link", "set", link, "up");
    const ipThere = (...words: string[]) => execFileSync("nsenter", [...enter.slice(1), "ip", ...words]);
    ipThere("address", "add", `${there}/30`, "dev", peer);
    ipThere("link", "set", peer, "up");
    ipThere("link", "set", "lo", "up");
  } catch (error) {
    await remove();
    throw error;
  }
  const command = (words: readonly string[]) => [...enter, ...words];
  return { here, there, command, remove, run: (words, env = {}) => execute(command(words), env) };
}

const ip = (...words: string[]) => execFileSync("ip", words);

function execute(
  [program = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Said> {
  const options = { env: { PATH: process.env.PATH, ...env }, maxBuffer: 64 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const gone = once(process, "exit");
  process.kill("SIGKILL");
  await gone;
}
