/**
 * Runs one program in the built image, as the tests of this folder need it: the only place that knows how the image is entered.
 *
 * Needs root and a built image in SANDBOX_PACKAGES_DIRECTORY (default: .pkgs of the repository). The program runs as uid 1000 in fresh
 * mount, pid, net, ipc and uts namespaces with the image as its read-only root and an empty workspace; nothing of it remains.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";

export interface Runtime {
  language: string;
  command: string[];
  env: Record<string, string>;
  version: string;
  entry: string;
}

export interface Job {
  /** Content of the entry file. */
  code: string;
  files?: Record<string, string | Buffer>;
  args?: string[];
  stdin?: string;
  /** Killed by SIGKILL after so many milliseconds. */
  killAfter?: number;
}

export interface Outcome {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** What the workspace holds afterwards, by path, without the entry file. */
  files: Map<string, Buffer>;
  /** Directories of the workspace. */
  directories: string[];
}

const repository = resolve(import.meta.dirname, "../../../..");
export const packagesDirectory = process.env.SANDBOX_PACKAGES_DIRECTORY ?? join(repository, ".pkgs");
export const rootfs = join(packagesDirectory, "rootfs");

const manifest: { image: string; runtimes: Runtime[] } = JSON.parse(
  await readFile(join(packagesDirectory, "runtimes.json"), "utf8"),
);
export const { image, runtimes } = manifest;

export function runtimeOf(language: string): Runtime {
  const found = runtimes.find((runtime) => runtime.language === language);
  if (found === undefined) throw new Error(`${language} is not in the image`);
  return found;
}

// pid 1 of the new namespaces; what it mounts goes with them. The program's output goes through pipes, its input comes from a file: sockets,
// which this process would give it, are nothing that a program meets in the jail.
const ENTER = `
set -euo pipefail
workspace=$1
shift
mount --bind "$ROOTFS" /mnt
mount -o remount,bind,ro,nosuid,nodev /mnt
mount -t proc -o nosuid,nodev,noexec proc /mnt/proc
mount -t tmpfs -o mode=755 tmpfs /mnt/dev
for node in null zero full random urandom; do
  touch "/mnt/dev/$node"
  mount --bind "/dev/$node" "/mnt/dev/$node"
done
mkdir -m 1777 /mnt/dev/shm
ln -s /proc/self/fd /mnt/dev/fd
for number in 0:stdin 1:stdout 2:stderr; do
  ln -s "/proc/self/fd/\${number%:*}" "/mnt/dev/\${number#*:}"
done
mount -t tmpfs -o mode=1777 tmpfs /mnt/tmp
mount --bind "$workspace" /mnt/mnt/data
hostname sandbox
exec {out}> >(cat)
copies=$!
exec {err}> >(cat >&2)
copies+=" $!"
chmod 666 "/proc/self/fd/$out" "/proc/self/fd/$err"
set +e
env -i "$@" >&"$out" 2>&"$err" {out}>&- {err}>&-
status=$?
exec {out}>&- {err}>&-
wait $copies
exit "$status"
`;

export async function run(language: string, job: Job): Promise<Outcome> {
  const { command, env, entry } = runtimeOf(language);
  const argv = command.map((part) => part.replace("{entry}", entry));
  const workspace = await mkdtemp(join(tmpdir(), "svc-image-test-"));
  try {
    await stage(workspace, { ...job.files, [entry]: job.code });
    const ended = await enter(workspace, env, [...argv, ...(job.args ?? [])], job);
    return { ...ended, ...(await collect(workspace, entry)) };
  } finally {
    await rm(workspace, { recursive: true, force: true });
    await rm(`${workspace}.stdin`, { force: true });
  }
}

async function stage(workspace: string, files: Record<string, string | Buffer>): Promise<void> {
  await chown(workspace, 1000, 1000);
  for (const [name, content] of Object.entries(files)) {
    const path = join(workspace, name);
    await mkdir(dirname(path), { recursive: true });
    await chown(dirname(path), 1000, 1000);
    await writeFile(path, content);
    await chown(path, 1000, 1000);
  }
}

async function enter(workspace: string, env: Record<string, string>, argv: string[], job: Job) {
  const input = await open(`${workspace}.stdin`, "w+");
  await input.write(job.stdin ?? "", 0);
  const child = spawn(
    "unshare",
    [
      ...["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--propagation=private"],
      ...["bash", "--norc", "-c", ENTER, "enter", workspace],
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...["/usr/sbin/chroot", "--userspec=1000:1000", "--groups=", "/mnt"],
      ...["/usr/bin/bash", "-c", 'cd /mnt/data && "$@"', "program", ...argv],
    ],
    { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ROOTFS: rootfs }, stdio: [input.fd, "pipe", "pipe"] },
  );
  const timer =
    job.killAfter === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), job.killAfter);
  const stdout = (child.stdout as Readable).toArray();
  const stderr = (child.stderr as Readable).toArray();
  const [exitCode] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  await input.close();
  return {
    exitCode,
    stdout: Buffer.concat(await stdout).toString("utf8"),
    stderr: Buffer.concat(await stderr).toString("utf8"),
  };
}

async function collect(workspace: string, entry: string): Promise<Pick<Outcome, "files" | "directories">> {
  const files = new Map<string, Buffer>();
  const directories: string[] = [];
  const entries = await readdir(workspace, { recursive: true, withFileTypes: true });
  for (const found of entries) {
    const path = join(found.parentPath, found.name);
    const name = path.slice(workspace.length + 1);
    if (found.isDirectory()) directories.push(name);
    else if (found.isFile() && name !== entry) files.set(name, await readFile(path));
  }
  return { files, directories };
}
