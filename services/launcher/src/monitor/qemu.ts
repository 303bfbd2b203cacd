/**
 * QEMU's machine type `microvm`: no PC firmware, no PCI, no network card. QEMU's process has an unprivileged user, its own root folder
 * (./own-root.ts), its own network, mount, IPC and UTS namespaces, and QEMU's system call filter. It inherits the wires as unnamed sockets. So a
 * guest that took over QEMU finds no file that it may write and no address to connect to. QEMU dies with the launcher.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { finished } from "node:stream/promises";
import { type Accelerator, kernelWords, PROCESSOR, QEMU } from "@svc/cli/microvm/machine";
import { confined } from "@svc/cli/users";
import { ConsoleLines } from "./console.ts";
import { DEVICES, type Machine, type MachineSpec, type Monitor, type Wires } from "./monitor.ts";
import { IMAGE, inOwnRoot, SAVED } from "./own-root.ts";
import { Qmp } from "./qmp.ts";

/** Descriptors, as spawn numbers them: of the wires, and (QMP, MEMORY, STATE) of a machine that is saved or resumes. */
const WIRES = [3, 4, 5] as const;
const QMP = 6;
const MEMORY = 7;
const STATE = 8;
/** Socket to which QEMU writes the state of devices. For a save, QEMU takes a descriptor only if it received it over a socket. */
const SOCKET = "socket";
/** The memory stays in its file and is not part of the state that QEMU writes. */
const CAPABILITIES = { capabilities: [{ capability: "x-ignore-shared", state: true }] };
/** `tb-size`: QEMU caches up to this many MiB of translated code. */
const ACCELERATOR = { kvm: "kvm", tcg: "tcg,thread=multi,tb-size=128" };
/**
 * As on a host, a program must meet only the limits of its jail. With overcommit it may ask for more memory at once than its guest has. The
 * kernel would derive the number of open files from the guest's memory; this is the number that programs see (jail/src/init/proc.c).
 */
const LIMITS_OF_JAILS = ["sysctl.vm.overcommit_memory=1", "sysctl.fs.file-max=1048576"];
/** A kernel parameter that the guest's first program reads (guest/boot.c). */
const UNVERIFIED = "unverified=1";
const FILTER = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

export function qemu(accelerator: Accelerator): Monitor {
  return { boot: (spec) => new QemuMachine(accelerator, spec) };
}

/** Pure. */
export function qemuCommand(accelerator: Accelerator, spec: MachineSpec): string[] {
  const { image, verified, ramMib, vcpus, logLevel, user, saving, from } = spec;
  const hasFile = saving !== undefined || from !== undefined;
  const kernel = [
    ...kernelWords(accelerator),
    `loglevel=${logLevel}`,
    "random.trust_cpu=on",
    ...LIMITS_OF_JAILS,
    ...(verified ? [] : [UNVERIFIED]),
  ].join(" ");
  const drive = `id=system,file=${IMAGE}/system.erofs,format=raw,if=none,readonly=on,file.locking=off`;
  return [
    // Lets it die with the launcher even before it changes to its user.
    ...confined("KILL", undefined),
    ...inOwnRoot(image, saving?.folder),
    ...confined("KILL", user),
    QEMU,
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-sandbox", FILTER],
    ...[
      "-machine",
      `microvm,rtc=on${hasFile ? ",memory-backend=ram" : ""}`,
      "-accel",
      ACCELERATOR[accelerator],
      "-cpu",
      PROCESSOR[accelerator],
    ],
    ...["-smp", `${vcpus}`, "-m", `${ramMib}`],
    ...["-kernel", `${IMAGE}/vmlinuz`, "-initrd", `${IMAGE}/initrd`, "-append", kernel],
    ...["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"],
    ...["-drive", drive, "-device", "virtio-blk-device,drive=system"],
    ...["-device", "virtio-rng-device"],
    ...(hasFile ? withMemoryFile(ramMib, saving !== undefined) : []),
    ...(from === undefined ? [] : ["-incoming", "defer"]),
    ...WIRES.flatMap((descriptor, at) => [
      ...["-chardev", `socket,id=wire${at},fd=${descriptor}`],
      ...["-device", `virtio-serial-device,id=serial${at},max_ports=2`],
      ...["-device", `virtserialport,bus=serial${at}.0,chardev=wire${at},name=svc.${at}`],
    ]),
  ];
}

/** `share`: the machine's writes go to the file. Otherwise they stay private to the machine. */
function withMemoryFile(ramMib: number, share: boolean): string[] {
  const file = `mem-path=/proc/self/fd/${MEMORY},share=${share ? "on" : "off"}`;
  return [
    ...["-object", `memory-backend-file,id=ram,size=${ramMib}M,${file}`],
    ...["-chardev", `socket,id=qmp,fd=${QMP}`, "-mon", "chardev=qmp,mode=control"],
  ];
}

class QemuMachine implements Machine {
  readonly #child: ChildProcess;
  readonly #qmp: Qmp | undefined;
  readonly #folder: string | undefined;
  readonly ended: Promise<string>;
  readonly running: Promise<void>;

  constructor(accelerator: Accelerator, spec: MachineSpec) {
    const [program = "", ...words] = qemuCommand(accelerator, spec);
    const { saving, from } = spec;
    const files = from === undefined ? [saving?.memory] : [from.memory, from.devices];
    const saved = files.some((file) => file !== undefined) ? (["pipe", ...files] as const) : [];
    this.#folder = saving?.folder;
    this.#child = spawn(program, words, {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe", ...saved],
    });
    // A process that cannot join its control group must not run.
    try {
      if (this.#child.pid !== undefined) spec.group?.add(this.#child.pid);
    } catch (error) {
      this.#child.kill("SIGKILL");
      throw error;
    }
    const { stdout, stderr } = this.#child;
    for (const stream of [stdout, stderr]) {
      const lines = new ConsoleLines(spec.onConsole);
      stream?.on("data", (bytes: Buffer) => lines.push(bytes));
    }
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(`it cannot be started: ${error.message}`));
      this.#child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    this.#qmp = saved.length > 0 ? new Qmp(this.#wire(QMP)) : undefined;
    this.running = from === undefined ? Promise.resolve() : this.#goOn();
    // Prevents an unhandled rejection; a caller that awaits it still gets the error.
    this.running.catch(() => undefined);
  }

  #wire(descriptor: number): Duplex {
    const wire = (this.#child.stdio as readonly unknown[])[descriptor];
    if (!(wire instanceof Duplex)) throw new Error("a machine without wires");
    return wire;
  }

  async #goOn(): Promise<void> {
    const qmp = this.#qmp as Qmp;
    await qmp.command("qmp_capabilities");
    await qmp.command("migrate-set-capabilities", CAPABILITIES);
    await qmp.command("migrate-incoming", { uri: `fd:${STATE}` });
    const status = await qmp.until("query-status", ["inmigrate"]);
    if (status !== "paused" && status !== "running") throw new Error(`QEMU does not go on: ${status}`);
    await qmp.command("cont");
    qmp.close();
  }

  async save(): Promise<void> {
    if (this.#qmp === undefined || this.#folder === undefined)
      throw new Error("the machine has no file for it");
    const qmp = this.#qmp;
    const { file, written } = newFile(join(this.#folder, DEVICES));
    const server = createServer((connection) => connection.pipe(file));
    try {
      await once(server.listen({ path: join(this.#folder, SOCKET), writableAll: true }), "listening");
      await qmp.command("qmp_capabilities");
      await qmp.command("migrate-set-capabilities", CAPABILITIES);
      await qmp.command("stop");
      await qmp.command("migrate", { uri: `unix:${SAVED}/${SOCKET}` });
      const status = await qmp.until("query-migrate", ["none", "setup", "active", "device"]);
      if (status !== "completed") throw new Error(`QEMU does not save the machine: ${status}`);
      await written;
    } finally {
      server.close();
      file.destroy();
      await this.end();
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  connect(): Wires {
    const [requests, gateway, control] = WIRES;
    return { requests: this.#wire(requests), gateway: this.#wire(gateway), control: this.#wire(control) };
  }

  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}

/**
 * Creates a new file; `written` resolves when it is complete. A failure that nobody awaits is ignored, so a full /dev/shm does not end the
 * launcher.
 */
export function newFile(path: string): { file: WriteStream; written: Promise<void> } {
  const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
  const written = finished(file);
  written.catch(() => undefined);
  return { file, written };
}
