/** What guests need, and what this machine holds of them, for tests. */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { Accelerator } from "@svc/cli/microvm/machine";
import { cgroupMounts } from "@svc/cli/system/cgroups";

/** Whether the whole systems of the tests run programs in microVMs: then neither these nor jaild nor a runner is on this machine. */
export const IN_GUESTS = process.env.KVM_ENABLED === "true";
/** What runs the guests of tests that boot some themselves. */
export const ACCELERATOR: Accelerator = process.env.LAUNCHER_ACCEL === "kvm" ? "kvm" : "tcg";
/** How `./svc up` and status then end what they say of authentication. */
export const MODE_END = IN_GUESTS ? "; in microVMs" : "";
/** The component that the workers ask. */
export const RUNNER = IN_GUESTS ? "launcher" : "runner";
/** The processes between the workers and a program. */
export const SANDBOX = IN_GUESTS ? (["launcher"] as const) : (["runner", "jaild"] as const);
/** Where what guests start from has been built already. */
const BUILT = process.env.TEST_MICROVM;
/** Where guest/build makes what has changed, otherwise. */
export const IMAGE = BUILT ?? join(ROOT, ".microvm");
/** Of guests of the tests, and of nobody else. */
export const UID_BASE = 230_000;
const UIDS = 1000;

/** Of the bundles and the root image that there are. */
export function buildGuest(): void {
  if (BUILT !== undefined) return;
  execFileSync(join(ROOT, "services/launcher/guest/build"), [IMAGE, join(ROOT, ".pkgs/current")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

const isGuestUser = (uid: number) => uid >= UID_BASE && uid < UID_BASE + UIDS;

export interface HostProcess {
  pid: number;
  uid: number;
  name: string;
}

/** Processes of this machine that have the user of a guest. */
export function guestProcesses(): HostProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), status: readStatus(name) }))
    .map(({ pid, status }) => ({ pid, uid: field(status, "Uid"), name: text(status, "Name"), status }))
    .filter(
      ({ uid, status }) => uid >= UID_BASE && uid < UID_BASE + UIDS && !text(status, "State").startsWith("Z"),
    )
    .map(({ pid, uid, name }) => ({ pid, uid, name }));
}

/** Empty when it is gone. */
function readStatus(pid: string | number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}

const text = (status: string, name: string) => new RegExp(`^${name}:\\t(.*)$`, "m").exec(status)?.[1] ?? "";
const field = (status: string, name: string) => Number.parseInt(text(status, name) || "-1", 10);

export function statusOf(pid: number): (name: string) => string {
  const status = readStatus(pid);
  return (name) => text(status, name);
}

export function namespacesOf(pid: number | "self"): string[] {
  return ["net", "mnt", "ipc", "uts"].map((kind) => readlinkSync(`/proc/${pid}/ns/${kind}`));
}

/** Names of files in memory that have the user of a guest. */
export const memoryFiles = () =>
  readdirSync("/dev/shm").filter((name) => isGuestUser(lstatSync(join("/dev/shm", name)).uid));

/** What a launcher with this number has beside processes: control groups, and second names of the files that guests start from. */
export const placesOf = (pid: number) =>
  [
    ...cgroupMounts().map(({ path }) => join(path, `svc-launcher-${pid}`)),
    join(IMAGE, `.launcher-${pid}`),
  ].filter((path) => existsSync(path));
