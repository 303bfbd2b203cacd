/**
 * A root folder of its own for QEMU, in which there is what it runs from and nothing that is another's: the programs and libraries of
 * the machine, the image of guests, the devices that it needs, and of the processes its own alone. All of it is read-only, and there
 * is no socket to connect to.
 */

/** Where the image is in it, and what a machine is saved to. */
export const IMAGE = "/guest";
export const SAVED = "/saved";

const DEVICES = ["null", "urandom", "kvm"];

/** Runs as root in a mount namespace of its own, whose mounts nobody else sees. $1: folder of the image, $2: of what is saved, or nothing; then the words of the program. */
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

/** The words before those of a program, which root runs. `image`, `saved`: folders that its user may use; only `saved` can be written. */
export function inOwnRoot(image: string, saved = ""): string[] {
  const namespaces = ["--net", "--ipc", "--uts", "--mount", "--propagation", "private"];
  return ["/usr/bin/unshare", ...namespaces, "--", "/bin/sh", "-c", ENTER, "sh", image, saved];
}
