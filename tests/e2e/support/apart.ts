/** Shell scripts in a mount namespace of their own: what they hide, cover or unmount is so for them alone. Needs root. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { Environment } from "./svc.ts";

/**
 * `hide NAME...`: no program of this name is found any more. `contained SCRIPT`: runs it as in a container that maps users, where root
 * is none of the machine's, with processes and mounts of its own.
 */
const FUNCTIONS = `
contained() {
  mountpoint -q /mnt || mount -t tmpfs apart /mnt
  mkfifo /mnt/mapped
  unshare --user /bin/sh -c 'read -r _ </mnt/mapped; exec unshare --mount --pid --fork /bin/sh -euc "$0"' "$1" &
  own=$(readlink /proc/self/ns/user)
  while test "$(readlink /proc/$!/ns/user)" = "$own"; do sleep 0.02; done
  echo 0 0 4294967295 >/proc/$!/uid_map
  echo 0 0 4294967295 >/proc/$!/gid_map
  echo >/mnt/mapped
  wait $!
  rm /mnt/mapped
}
hide() {
  mountpoint -q /mnt || mount -t tmpfs apart /mnt
  for name; do
    for folder in /usr/bin /usr/sbin /bin /sbin; do
      test -e "$folder/$name" || continue
      upper=$(mktemp -d -p /mnt)
      mkdir "$upper/up" "$upper/work"
      mknod "$upper/up/$name" c 0 0
      mount -t overlay -o "lowerdir=$folder,upperdir=$upper/up,workdir=$upper/work" overlay "$folder"
    done
  done
}
`;

/** With ./svc as $SVC. Answers what it printed on both streams, and rejects with that when it fails. */
export function apart(script: string, environment: Environment = {}): Promise<string> {
  const env = { ...process.env, ...environment, SVC: join(ROOT, "svc") };
  const words = [
    "--mount",
    "--propagation",
    "slave",
    "/bin/sh",
    "-c",
    `set -eu; exec 2>&1; ${FUNCTIONS}${script}`,
  ];
  return new Promise((resolve, reject) => {
    execFile("/usr/bin/unshare", words, { env, maxBuffer: 2 ** 24 }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(new Error(stdout, { cause: error })),
    );
  });
}
