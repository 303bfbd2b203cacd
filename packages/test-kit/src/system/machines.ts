/**
 * Machines beside this one, as far as the network goes: a network namespace for each, and one for the switch between them and this
 * machine. They share its file systems and processors. They end with their owner, however that happens: the kernel removes the
 * links with them. Needs root and iproute2.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { pidOf } from "../components/component.ts";

const MOST_MACHINES = 2 ** 8 - 3;

export interface Machine {
  /** Of its only link. */
  address: string;
  /** Goes before the command line of what shall run there, which gets SIGTERM when this process ends. */
  through: readonly string[];
  /** The port of the switch is down: nothing comes in or out, and nobody is told. */
  unplug: () => void;
  plug: () => void;
}

export class Machines {
  /** Address of this machine as the others see it. */
  readonly here: string;
  readonly #net: string;
  readonly #name: string;
  readonly #switch: ChildProcess;
  readonly #holders: ChildProcess[] = [];

  private constructor(id: Buffer, holder: ChildProcess) {
    // In the range for measurements between networks (RFC 2544).
    this.#net = `198.19.${id[0]}`;
    this.#name = `svc${id.toString("hex")}`;
    this.#switch = holder;
    this.here = `${this.#net}.1`;
  }

  static async start(): Promise<Machines> {
    const machines = new Machines(randomBytes(3), await startHolder());
    try {
      machines.#openSwitch();
    } catch (error) {
      await machines.remove();
      throw error;
    }
    return machines;
  }

  #openSwitch(): void {
    const [near, far] = [`${this.#name}n`, `${this.#name}f`];
    ip(this.#switch, "link", "add", "name", "switch", "type", "bridge");
    ip(this.#switch, "link", "set", "switch", "up");
    execFileSync("ip", [
      ...["link", "add", "name", near, "type", "veth"],
      ...["peer", "name", far, "netns", String(this.#switch.pid)],
    ]);
    execFileSync("ip", ["address", "add", `${this.here}/24`, "dev", near]);
    execFileSync("ip", ["link", "set", near, "up"]);
    this.#attach(far);
  }

  #attach(port: string): void {
    ip(this.#switch, "link", "set", port, "master", "switch");
    ip(this.#switch, "link", "set", port, "up");
  }

  /** A further machine, which reaches the others and is reached by them. */
  async add(): Promise<Machine> {
    const number = this.#holders.length + 1;
    if (number > MOST_MACHINES) throw new Error("the net has no more addresses");
    const holder = await startHolder();
    this.#holders.push(holder);
    const [port, address] = [`port${number}`, `${this.#net}.${number + 1}`];
    ip(
      this.#switch,
      ...["link", "add", "name", port, "type", "veth"],
      ...["peer", "name", "wire", "netns", String(holder.pid)],
    );
    this.#attach(port);
    ip(holder, "address", "add", `${address}/24`, "dev", "wire");
    ip(holder, "link", "set", "wire", "up");
    ip(holder, "link", "set", "lo", "up");
    return {
      address,
      through: ["/usr/bin/setpriv", "--pdeathsig", "TERM", ...entering(holder)],
      unplug: () => ip(this.#switch, "link", "set", port, "down"),
      plug: () => ip(this.#switch, "link", "set", port, "up"),
    };
  }

  /** What still runs on a machine keeps its namespace, without links. */
  async remove(): Promise<void> {
    for (const holder of [...this.#holders, this.#switch]) {
      if (holder.exitCode !== null || holder.signalCode !== null) continue;
      const gone = once(holder, "exit");
      holder.kill("SIGKILL");
      await gone;
    }
  }
}

const entering = (holder: ChildProcess) => ["nsenter", `--net=/proc/${pidOf(holder)}/ns/net`, "--"];

function ip(holder: ChildProcess, ...words: string[]): void {
  const [program = "", ...enter] = entering(holder);
  execFileSync(program, [...enter, "ip", ...words]);
}

/** A process that keeps a network namespace. */
async function startHolder(): Promise<ChildProcess> {
  const holder = spawn(
    "/usr/bin/setpriv",
    ["--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready && exec sleep infinity"],
    { env: { PATH: process.env.PATH }, stdio: ["ignore", "pipe", "inherit"] },
  );
  const early = once(holder, "exit").then(([code]) => {
    throw new Error(`a machine ended with exit code ${code}`);
  });
  early.catch(() => undefined);
  await Promise.race([once(holder.stdout as NonNullable<typeof holder.stdout>, "data"), early]);
  return holder;
}
