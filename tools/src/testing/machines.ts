/**
 * The virtual machines of the tests, as data: what each has, and the test files that run in it, by their project. ./virtual-machine.ts
 * boots them.
 */
import type { MachineProject, VitestProject } from "./suites.ts";

type Files = Partial<Record<VitestProject | MachineProject, readonly string[]>>;

interface Machine {
  files: Files;
  memoryMb: number;
  /** Arguments of QEMU. */
  processors: readonly string[];
  /** How many times more time tests take and grant than on an ordinary machine. */
  slowness: number;
  /** Names of its disks, in the order in which the kernel finds them. */
  disks: readonly string[];
}

/**
 * The machine's clock counts the instructions that it executes, a billion to the second, and goes on by itself while it
 * idles. So tests find the same machine however slow and busy this one is, a few times slower than an ordinary one.
 */
const COUNTED = ["-accel", "tcg,thread=single", "-icount", "shift=0", "-smp", "1"];
/** With the clock of the host, so that a nested machine keeps time, too. */
const PARALLEL = ["-accel", "tcg,thread=multi,tb-size=512", "-smp", "2"];

const V2 = { memoryMb: 2560, processors: COUNTED, slowness: 5, disks: ["system", "tree", "image"] };

const liveFiles = (names: readonly string[]) =>
  names.map((name) => `packages/jail-client/test/live/${name}.test.ts`);

export const MACHINES = {
  /** Control groups of version 2 with all controllers. */
  v2: {
    ...V2,
    files: {
      live: liveFiles([
        "limits",
        "group-limits",
        "lifecycle",
        "pause",
        "confinement",
        "syscalls",
        "shared-kernel",
        "two-runs",
        "zygotes",
        "shortage",
        "takeover",
      ]),
      v2: ["tests/v2/groups.test.ts", "tests/v2/system.test.ts"],
    },
  },
  /** The same with systemd. */
  service: { ...V2, files: { v2: ["tests/v2/service.test.ts"] } },
  /**
   * A processor whose virtualisation is emulated, so that KVM runs microVMs in it. Runs only tests that leave it idle but
   * for one guest: beside other work, emulators (QEMU 7.2 and 10.0) confuse the kernels of both.
   */
  kvm: {
    memoryMb: 6144,
    processors: PARALLEL,
    slowness: 6,
    disks: ["system-kvm", "tree", "image", "guest"],
    files: {
      kvm: [
        "services/launcher/test/microvm/refused-group.test.ts",
        "services/launcher/test/microvm/root-image.test.ts",
        "services/launcher/test/microvm/saved-guest.test.ts",
        "services/launcher/test/microvm/taken-over.test.ts",
      ],
    },
  },
} as const satisfies Record<string, Machine>;
export type MachineName = keyof typeof MACHINES;

export const isMachine = (name: string): name is MachineName => name in MACHINES;

/** The suites that run in machines, and in which. */
export const MACHINE_SUITES = { v2: ["v2", "service"], kvm: ["kvm"] } as const satisfies Record<
  MachineProject,
  readonly MachineName[]
>;

/** The test files of a machine whose path contains a filter, by project; without filters all of them. */
export function filesOf(
  machine: MachineName,
  filters: readonly string[],
): [project: VitestProject | MachineProject, paths: string[]][] {
  const files: Files = MACHINES[machine].files;
  const isPicked = (path: string) => filters.length === 0 || filters.some((filter) => path.includes(filter));
  return (Object.keys(files) as (keyof Files)[]).flatMap((project) => {
    const paths = files[project]?.filter(isPicked) ?? [];
    return paths.length === 0 ? [] : [[project, paths]];
  });
}

/** Whether a filter picks a file of a suite. */
export const suiteHas = (suite: MachineProject, filter: string): boolean =>
  MACHINE_SUITES[suite].some((machine) => filesOf(machine, [filter]).length > 0);
