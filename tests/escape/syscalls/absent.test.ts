/**
 * System calls that attacks on kernels begin with do not exist in a jail, with right arguments as with garbage: io_uring,
 * bpf, perf, userfaultfd, keyrings, tracing of processes, both mount interfaces, notices of accesses, handles, modules, kexec, clocks, filters.
 */
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";

const GROUPS: Record<string, Record<string, number>> = {
  io_uring: {
    io_uring_setup: 425,
    io_uring_enter: 426,
    io_uring_register: 427,
    io_setup: 206,
    io_submit: 209,
  },
  "bpf and perf": { bpf: 321, perf_event_open: 298 },
  userfaultfd: { userfaultfd: 323, process_mrelease: 448, process_madvise: 440 },
  keyrings: { add_key: 248, request_key: 249, keyctl: 250 },
  "other processes' memory and descriptors": {
    ptrace: 101,
    process_vm_readv: 310,
    process_vm_writev: 311,
    pidfd_getfd: 438,
    kcmp: 312,
    move_pages: 279,
    migrate_pages: 256,
  },
  "the old mount interface": {
    mount: 165,
    umount2: 166,
    pivot_root: 155,
    chroot: 161,
    swapon: 167,
    swapoff: 168,
    quotactl: 179,
  },
  "the new mount interface": {
    open_tree: 428,
    move_mount: 429,
    fsopen: 430,
    fsconfig: 431,
    fsmount: 432,
    fspick: 433,
    mount_setattr: 442,
    statmount: 457,
    listmount: 458,
    open_tree_attr: 467,
  },
  "notices of accesses to files": {
    inotify_init: 253,
    inotify_add_watch: 254,
    inotify_rm_watch: 255,
    inotify_init1: 294,
  },
  "file handles": { name_to_handle_at: 303, open_by_handle_at: 304, fanotify_init: 300, fanotify_mark: 301 },
  "modules and kexec": {
    init_module: 175,
    finit_module: 313,
    delete_module: 176,
    kexec_load: 246,
    kexec_file_load: 320,
    create_module: 174,
  },
  "the machine": {
    reboot: 169,
    sethostname: 170,
    setdomainname: 171,
    iopl: 172,
    ioperm: 173,
    acct: 163,
    vhangup: 153,
    syslog: 103,
    nfsservctl: 180,
  },
  clocks: { settimeofday: 164, clock_settime: 227, clock_adjtime: 305, adjtimex: 159 },
  "filters and secret memory": {
    seccomp: 317,
    landlock_create_ruleset: 444,
    landlock_add_rule: 445,
    landlock_restrict_self: 446,
    memfd_secret: 447,
    modify_ldt: 154,
    map_shadow_stack: 453,
    lsm_set_self_attr: 460,
  },
  "message queues and old interfaces": {
    mq_open: 240,
    mq_unlink: 241,
    uselib: 134,
    ustat: 136,
    sysfs: 139,
    _sysctl: 156,
    lookup_dcookie: 212,
    remap_file_pages: 216,
  },
};

test.each(Object.entries(GROUPS))("%s", async (_what, calls) => {
  const seen = await evidence<Record<string, string[]>>(`
buffer = ctypes.create_string_buffer(4096)
path = ctypes.c_char_p(b"/mnt/data")
def tries(number):
    yield call(number, 0, 0, 0, 0, 0, 0)
    yield call(number, 1, buffer, buffer, buffer, 0, 0)
    yield call(number, path, path, buffer, 4096, buffer, 0)
    yield call(number, os.getpid(), os.getpid(), 0, 0, 0, 0)
    yield call(number, *[1 << 32] * 6)
    yield call(number, *[(1 << 64) - 1] * 6)
    yield call(1 << 32 | number, 0, 0, 0, 0, 0, 0)
show({name: sorted(set(tries(number))) for name, number in json.loads('${JSON.stringify(calls)}').items()})`);
  expect(seen).toEqual(Object.fromEntries(Object.keys(calls).map((name) => [name, ["ENOSYS"]])));
});

test("every number that no kernel has given out", async () => {
  expect(
    await evidence(`show(sorted({call(n, 0, 0, 0, 0, 0, 0) for n in
  list(range(337, 424)) + list(range(470, 1200)) + [0xffff, 0x3fffffff, 0x7fffffff, 0xfffff000, 0xffffffff]}))`),
  ).toEqual(["ENOSYS"]);
});

test("the two numbers that the kernel keeps for its probes, which no filter sees, are errors", async () => {
  const [probe, killed] = await evidence<[string, number]>(
    `show([call(336, 0, 0, 0, 0, 0, 0), child(lambda: os._exit(0 if call(335, 0, 0, 0, 0, 0, 0) == "ok" else 9))])`,
  );
  // Kernels that have them: no such address, and an illegal instruction.
  expect(["ENOSYS", "ENXIO", "EPROTO"]).toContain(probe);
  expect([9, -4]).toContain(killed);
});

test("the tools that make these calls fail as ordinary programs do", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `for command in "mount -t tmpfs x /tmp" "umount /tmp" "unshare -U true" "unshare -m true" "nsenter -t 1 -m true" "chroot / true" \\
  "dmesg" "date -s 2000-01-01" "chrt -f 10 true" "setpriv --reuid 0 true" "swapon /tmp/x" "pivot_root / /tmp" "losetup -f"; do
  if type \${command%% *} > /dev/null 2>&1; then tried=$((tried + 1)); $command > /dev/null 2>&1 < /dev/null && echo "done: $command"; fi
done
echo $((tried > 2)); hostname`,
  });
  expect(stdout).toBe("1\nsandbox\n");
});

test("devices that give a kernel interface are not there, and cannot be made", async () => {
  const devices = {
    kvm: [10, 232],
    fuse: [10, 229],
    mem: [1, 1],
    kmsg: [1, 11],
    "net/tun": [10, 200],
    "vhost-vsock": [10, 241],
    userfaultfd: [10, 126],
    loop0: [7, 0],
    sda: [8, 0],
  };
  expect(
    await evidence(`
devices = json.loads('${JSON.stringify(devices)}')
import stat
show([sorted({attempt(lambda: os.open("/dev/" + name, os.O_RDWR)) for name in devices}),
  sorted({attempt(lambda: os.mknod("/mnt/data/d", kind | 0o666, os.makedev(*numbers))) for numbers in devices.values() for kind in (stat.S_IFCHR, stat.S_IFBLK)}),
  os.listdir("/mnt/data")])`),
  ).toEqual([["ENOENT"], ["EPERM"], ["main.py"]]);
});
