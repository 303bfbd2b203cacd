/**
 * podman and podman-compose as root, for tests: as docs/containers.md has them, but for what a machine without systemd, without the
 * right to raise limits or with both versions of control groups needs beside.
 */
import { execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "@svc/cli/system/root";
import { run as runToEnd } from "@svc/cli/system/run";
import { until } from "../system/processes.ts";

/** Program and the Debian package that has it. */
const NEEDED = {
  podman: "podman",
  "podman-compose": "podman-compose",
  buildah: "buildah",
  mmdebstrap: "mmdebstrap",
  crun: "crun",
  // netavark says no more than "No such file or directory" without it.
  iptables: "iptables",
  nsenter: "util-linux",
} as const;
/** The limit of open files that podman gives containers unless it is told another one. */
const OPEN_FILES = 1_048_576;
/** Of one user. podman has a lower limit itself than the shell that starts it. */
const PROCESSES = 16_384;
/** Present where both versions of control groups are mounted. crun refuses to start beside it. */
const SECOND_TREE = "/sys/fs/cgroup/unified";
/** No command takes longer; a start waits for many. */
const COMMAND_MS = 300_000;

/** Throws with the programs that are missing and the command that brings them. */
export function requirePodman(): void {
  const missing = Object.entries(NEEDED).filter(([program]) => findProgram(program) === undefined);
  if (missing.length === 0) return;
  const [programs, packages] = [missing.map(([program]) => program), missing.map(([, name]) => name)];
  throw new Error(
    `${programs.join(", ")}: not found\napt-get install -y --no-install-recommends ${packages.join(" ")} netavark aardvark-dns`,
  );
}

export interface Podman {
  /** What the command printed; throws with what it said when it fails. */
  podman: (...args: readonly string[]) => string;
  tryPodman: (...args: readonly string[]) => SpawnSyncReturns<string>;
  /** podman-compose with a compose file, to its end: its last lines. Throws with them when it fails. */
  compose: (file: string, args: readonly string[]) => Promise<string[]>;
  /** The process whose mounts it uses; undefined: this one's. */
  mountsOf: number | undefined;
  /** Where and with which variables both programs run. */
  through: readonly string[];
  env: Readonly<Record<string, string>>;
  close: () => void;
}

/**
 * Settles when containers can be started. The place ends with this process. `given`: that of containers which run beside these,
 * because podman looks at the mounts of all containers that there are.
 */
export async function openPodman(given?: number): Promise<Podman> {
  requirePodman();
  const folder = mkdtempSync(join(tmpdir(), "svc-podman-"));
  const settings = settingsOf(folder);
  const env = { ...process.env, ...settings };
  const own = given === undefined ? await ownMounts() : undefined;
  const mountsOf = given ?? own?.pid;
  const through = mountsOf === undefined ? [] : ["nsenter", `--mount=/proc/${mountsOf}/ns/mnt`, "--"];
  const start = (...command: readonly string[]) => {
    const [file = "", ...rest] = [...through, ...command];
    return spawnSync(file, rest, { env, encoding: "utf8", timeout: COMMAND_MS, maxBuffer: 1 << 28 });
  };
  const printed = (what: string, { status, stdout, stderr }: SpawnSyncReturns<string>) => {
    if (status !== 0) throw new Error(`${what}: exit code ${status}\n${stderr}`);
    return stdout.trimEnd();
  };
  const tryPodman: Podman["tryPodman"] = (...args) => start("podman", ...args);
  return {
    tryPodman,
    podman: (...args) => printed(`podman ${args.join(" ")}`, tryPodman(...args)),
    compose: async (file, args) => {
      const { code, tail } = await runToEnd([...through, "podman-compose", "-f", file, ...args], { env });
      if (code !== 0)
        throw new Error(`podman-compose ${args.join(" ")}: exit code ${code}\n${tail.join("\n")}`);
      return tail;
    },
    mountsOf,
    through,
    env: settings,
    close: () => {
      own?.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What this machine needs that others do not, and names between containers, which CNI (podman's choice of long ago) does not give them. */
function settingsOf(folder: string): Record<string, string> {
  const CONTAINERS_CONF = join(folder, "containers.conf");
  const lines = ["[network]", 'network_backend = "netavark"', "[engine]", 'runtime = "crun"'];
  const hasSystemd = existsSync("/run/systemd/system");
  if (!hasSystemd) lines.push('cgroup_manager = "cgroupfs"');
  if (spawnSync("prlimit", [`--nofile=${OPEN_FILES}`, "true"]).status !== 0) {
    const files = execFileSync("bash", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim();
    lines.push("[containers]");
    lines.push(`default_ulimits = ["nofile=${files}:${files}", "nproc=${PROCESSES}:${PROCESSES}"]`);
  }
  writeFileSync(CONTAINERS_CONF, `${lines.join("\n")}\n`);
  return { CONTAINERS_CONF, ...(hasSystemd ? {} : { DISABLE_HC_SYSTEMD: "true" }) };
}

/** Mounts without the second tree of control groups; undefined where there is none. */
async function ownMounts(): Promise<{ pid: number; end: () => void } | undefined> {
  if (!existsSync(SECOND_TREE)) return undefined;
  const script = `umount ${SECOND_TREE} && echo ready && exec sleep infinity`;
  const command = ["--pdeathsig", "KILL", "--", "unshare", "--mount", "sh", "-c", script];
  const holder = spawn("setpriv", command, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  holder.stdout.on("data", (chunk: Buffer) => {
    said += chunk;
  });
  await until(() => said.includes("ready") || holder.exitCode !== null, 30_000);
  if (holder.exitCode !== null || holder.pid === undefined)
    throw new Error(`${SECOND_TREE} could not be taken out of the way`);
  return { pid: holder.pid, end: () => void holder.kill("SIGKILL") };
}
