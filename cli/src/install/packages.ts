/** The Debian packages that this repository uses, as data, and their installation. */
import { existsSync, readFileSync } from "node:fs";
import { Problem } from "../problem.ts";
import { findProgram } from "../system/root.ts";
import { mustRun, shown } from "../system/run.ts";
import type { Note } from "../terminal.ts";

/**
 * Programs that are a Redis or Valkey server. Debian's redis-check-rdb is the server's own program under another name:
 * called as redis-server it serves.
 */
const REDIS_PROGRAMS = ["redis-server", "valkey-server", "redis-check-rdb"] as const;

export interface DebianPackage {
  name: string;
  why: string;
  /** The package counts as installed when one of these programs or files exists. */
  provides: readonly string[];
}

const RUN: readonly DebianPackage[] = [
  { name: "gcc", why: "builds the jail", provides: ["gcc"] },
  { name: "libc6-dev", why: "builds the jail", provides: ["/usr/include/stdio.h"] },
  { name: "make", why: "builds the jail", provides: ["make"] },
  { name: "xz-utils", why: "unpacks the packages of the root image", provides: ["xz"] },
  // Holds the server program without the system service that the package redis-server would start on port 6379.
  { name: "redis-tools", why: "job queue and shared state", provides: REDIS_PROGRAMS },
  { name: "curl", why: "for the commands that are printed", provides: ["curl"] },
];

/** Only for KVM_ENABLED. */
const MICROVM: readonly DebianPackage[] = [
  { name: "qemu-system-x86", why: "runs microVMs", provides: ["qemu-system-x86_64"] },
  { name: "erofs-utils", why: "makes the root image of microVMs", provides: ["mkfs.erofs"] },
  { name: "cpio", why: "makes what microVMs boot first", provides: ["cpio"] },
  {
    name: "cryptsetup-bin",
    why: "hashes the blocks of the root image of microVMs",
    provides: ["veritysetup"],
  },
];

const TEST: readonly DebianPackage[] = [
  { name: "shellcheck", why: "checks the shell scripts", provides: ["shellcheck"] },
  { name: "systemd", why: "checks the unit of ./svc install", provides: ["systemd-analyze"] },
  { name: "jq", why: "runs the commands of the README", provides: ["jq"] },
  { name: "zsh", why: "completes ./svc in tests", provides: ["zsh"] },
  { name: "fish", why: "completes ./svc in tests", provides: ["fish"] },
  { name: "sudo", why: "gives ./svc of another user root rights in tests", provides: ["sudo"] },
];

/** A real S3 server, and certificates for it. */
const TEST_S3: readonly DebianPackage[] = [
  { name: "radosgw", why: "the S3 server of the tests", provides: ["radosgw"] },
  { name: "ceph-mon", why: "the S3 server of the tests", provides: ["ceph-mon"] },
  { name: "ceph-osd", why: "the S3 server of the tests", provides: ["ceph-osd"] },
  { name: "ceph-common", why: "the S3 server of the tests", provides: ["ceph"] },
  { name: "openssl", why: "makes certificates for tests", provides: ["openssl"] },
];

/** For libFuzzer. */
const TEST_FUZZ: readonly DebianPackage[] = [
  { name: "clang", why: "fuzzes the jail", provides: ["clang"] },
  { name: "libclang-rt-dev", why: "fuzzes the jail", provides: ["/var/lib/dpkg/info/libclang-rt-dev.list"] },
];

/** Virtual machines in which tests run. */
const TEST_MACHINES: readonly DebianPackage[] = [
  { name: "qemu-system-x86", why: "runs tests in virtual machines", provides: ["qemu-system-x86_64"] },
  { name: "mmdebstrap", why: "makes the virtual machines' systems", provides: ["mmdebstrap"] },
  { name: "e2fsprogs", why: "makes the virtual machines' disks", provides: ["mke2fs"] },
];

export type Purpose = "run" | "microvm" | "test" | "test-s3" | "test-fuzz" | "test-machines";

const WANTED: Readonly<Record<Purpose, readonly DebianPackage[]>> = {
  run: RUN,
  microvm: MICROVM,
  test: [...RUN, ...TEST],
  "test-s3": TEST_S3,
  "test-fuzz": TEST_FUZZ,
  "test-machines": TEST_MACHINES,
};

/** Path of the server; it serves only when it is called as redis-server. */
export function redisProgram(): string | undefined {
  return REDIS_PROGRAMS.map(findProgram).find((path) => path !== undefined);
}

export const packagesFor = (...purposes: readonly Purpose[]) =>
  purposes.flatMap((purpose) => WANTED[purpose]);

export function missingPackages(...purposes: readonly Purpose[]): DebianPackage[] {
  return packagesFor(...purposes).filter(
    ({ provides }) => !provides.some((item) => (item.startsWith("/") ? existsSync(item) : findProgram(item))),
  );
}

export function installCommands(packages: readonly DebianPackage[]): string[][] {
  const install = [
    "apt-get",
    "install",
    "-y",
    "--no-install-recommends",
    ...packages.map(({ name }) => name),
  ];
  return [["apt-get", "update"], install];
}

/** The lines that announce an installation before it begins. */
export function announcement(packages: readonly DebianPackage[]): string[] {
  return [
    ...packages.map(({ name, why }) => `will install ${name} (${why})`),
    installCommands(packages).map(shown).join(" && "),
  ];
}

/** Must run as root. */
export async function installPackages(packages: readonly DebianPackage[], note: Note): Promise<void> {
  const commands = installCommands(packages);
  if (findProgram("apt-get") === undefined) {
    const list = packages.map(({ name, why }) => `  ${name}: ${why}`).join("\n");
    throw new Problem("programs are missing, and this system has no apt-get to install them", list);
  }
  for (const line of announcement(packages)) note(line);
  for (const command of commands) {
    await mustRun(["env", "DEBIAN_FRONTEND=noninteractive", ...command], command.slice(0, 2).join(" "), {
      onLine: (line) => /^(Get|Unpacking|Setting up|E:)/.test(line) && note(line),
    });
  }
}

/** `Debian GNU/Linux 12 (bookworm)` */
export function systemName(file = "/etc/os-release"): string {
  try {
    return /^PRETTY_NAME="?(.*?)"?$/m.exec(readFileSync(file, "utf8"))?.[1] ?? "unknown Linux";
  } catch {
    return "unknown Linux";
  }
}
