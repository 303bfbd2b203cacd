/**
 * QEMU's own root folder. It holds only what QEMU runs from: programs and libraries of the machine, the guests' image, and the devices that it
 * needs. Of all processes it shows only QEMU's own. Only the folder that a machine is saved to is writable. There is no socket to connect to,
 * except in that folder during a save.
 */

/** Where the image is in this root folder, and the folder that a machine is saved to. */
export const IMAGE = "/guest";
export const SAVED = "/saved";

const DEVICES = ["null", "urandom", "kvm"];

/**
 * Runs as root in its own mount namespace, whose mounts nobody else sees. $1: folder of the image. $2: folder that the machine is saved to, or
 * empty. Then the program with its arguments.
 */
const ENTER = `set -eu
# They may be below the folder that is covered.
cd "$1"
saved=$2
[ -z "$saved" ] || exec 9<"$saved"
shift 2
mount -t tmpfs -o mode=0755,size=64k,nr_inodes=64 root /tmp
mkdir /tmp/usr /tmp/proc /tmp/dev /tmp${IMAGE}
for folder in bin lib lib64; do
  ln -s "usr/$folder" "/tmp/$folder"
done
mount --bind /usr /tmp/usr
mount -o remount,bind,ro,nosuid,nodev /tmp/usr
mount --no-canonicalize --bind . /tmp${IMAGE}
mount -o remount,bind,ro,nosuid,nodev,noexec /tmp${IMAGE}
if [ -n "$saved" ]; then
  mkdir /tmp${SAVED}
  mount --no-canonicalize --bind /proc/self/fd/9 /tmp${SAVED}
  exec 9<&-
fi
mount -t proc -o hidepid=invisible,nosuid,nodev,noexec proc /tmp/proc
for device in ${DEVICES.join(" ")}; do
  [ -e "/dev/$device" ] || continue
  : >"/tmp/dev/$device"
  mount --bind "/dev/$device" "/tmp/dev/$device"
done
mount -o remount,ro /tmp
cd /tmp
/usr/sbin/pivot_root . .
umount -l .
cd /
exec "$@"`;

/**
 * The command prefix that starts a program in its own root folder; root runs it. The program's user may use the folders `image` and `saved`, and
 * can write only `saved`.
 */
export function inOwnRoot(image: string, saved = ""): string[] {
  const namespaces = ["--net", "--ipc", "--uts", "--mount", "--propagation", "private"];
  return ["/usr/bin/unshare", ...namespaces, "--", "/bin/sh", "-c", ENTER, "sh", image, saved];
}
