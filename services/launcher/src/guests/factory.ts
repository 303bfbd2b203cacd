/** Creates guests from the configuration. Each has its own user id, which no other living guest has. */

import { closeSync } from "node:fs";
import { MICROVM_OVERHEAD_MIB } from "@svc/cli/capacity";
import type { Chosen } from "@svc/cli/microvm/accelerator";
import type { Config, Log, TlsIdentity } from "@svc/service-kit";
import { Groups } from "../monitor/groups.ts";
import type { MachineSpec } from "../monitor/monitor.ts";
import { qemu } from "../monitor/qemu.ts";
import { guestEnvironment } from "./environment.ts";
import { discardingGateway, gatewayConnector } from "./gateway.ts";
import { Guest, type GuestOptions } from "./guest.ts";
import { Snapshot, type User } from "./snapshot.ts";

const MIB = 2 ** 20;
/** Limit of the pids controller for QEMU, which counts its threads. */
const PROCESSES = 256;
/** Longest boot. It takes a second or two with KVM; emulated, on a busy machine, it takes minutes. */
const BOOT_MS = 300_000;

export interface FactoryOptions {
  config: Config;
  /** Folder of the files that guests start from. They do not change while the launcher runs. */
  image: string;
  /** Languages in the image. */
  languages: readonly string[];
  chosen: Chosen;
  log: Log;
  tls: TlsIdentity | undefined;
}

export class GuestFactory {
  readonly #options: Omit<GuestOptions, "machine">;
  readonly #machine: Omit<MachineSpec, "user" | "onConsole">;
  readonly #base: User;
  /** Group that may open /dev/kvm. */
  readonly #group: number | undefined;
  readonly #languages: readonly string[];
  readonly #log: Log;
  readonly #numbers = new FreeNumbers();
  readonly #groups: Groups | undefined;
  #snapshot: Snapshot | undefined;

  constructor({ config, image, languages, chosen: { accelerator, gid }, log, tls }: FactoryOptions) {
    this.#languages = languages;
    this.#log = log;
    this.#group = gid;
    this.#base = { uid: config.SANDBOX_JOB_UID_BASE, gid: config.SANDBOX_JOB_GID_BASE };
    this.#options = {
      monitor: qemu(accelerator),
      env: guestEnvironment(config),
      connectGateway: gatewayConnector(config.SANDBOX_FORWARD_TARGET, tls),
      bootMs: BOOT_MS,
    };
    this.#groups = groupsOr(log);
    this.#machine = {
      image,
      // Verified only with KVM: an emulated processor takes a tenth of a second to check a MiB.
      verified: accelerator === "kvm",
      ramMib: config.LAUNCHER_RAM_MIB,
      vcpus: config.LAUNCHER_VCPUS,
      logLevel: config.LAUNCHER_LOG_LEVEL,
    };
  }

  /** Saves a guest, from which all later guests resume. If that fails, each guest boots instead. Never rejects. */
  async prepare(): Promise<void> {
    const number = this.#numbers.take();
    const began = performance.now();
    try {
      this.#snapshot = await Snapshot.take({
        user: this.#userOf(number),
        languages: this.#languages,
        image: this.#machine.image,
        boot: (saving) => this.#guest(number, { saving }),
      });
      this.#log.info(
        { ms: Math.round(performance.now() - began) },
        "a microVM is saved, from which others go on",
      );
    } catch (err) {
      this.#log.warn({ err }, "no microVM could be saved; each boots");
    } finally {
      this.#numbers.giveBack(number);
    }
  }

  /** Starts a guest. Throws when it cannot be started. */
  boot(): Guest {
    const number = this.#numbers.take();
    try {
      const guest =
        this.#snapshot === undefined ? this.#guest(number, {}) : this.#goOn(number, this.#snapshot);
      void guest.ended.then(() => this.#numbers.giveBack(number));
      return guest;
    } catch (error) {
      this.#numbers.giveBack(number);
      throw error;
    }
  }

  #goOn(number: number, snapshot: Snapshot): Guest {
    const from = snapshot.state();
    try {
      return this.#guest(number, { from }, snapshot.lastStream);
    } finally {
      // QEMU has inherited the descriptor.
      closeSync(from.devices);
    }
  }

  #userOf(number: number): User {
    return { uid: this.#base.uid + number, gid: this.#group ?? this.#base.gid + number };
  }

  #guest(number: number, memory: Pick<MachineSpec, "saving" | "from">, lastStream?: number): Guest {
    const { ramMib, vcpus } = this.#machine;
    const group = this.#groups?.make(number, {
      memoryBytes: (ramMib + MICROVM_OVERHEAD_MIB) * MIB,
      cpus: vcpus,
      processes: PROCESSES,
    });
    const guest = new Guest({
      ...this.#options,
      machine: {
        ...this.#machine,
        ...memory,
        ...(group && { group }),
        user: this.#userOf(number),
        onConsole: (line) => this.#log.info({ guest: number, line }, "console of a microVM"),
      },
      ...(memory.saving && { connectGateway: discardingGateway() }),
      ...(lastStream === undefined ? {} : { lastStream }),
    });
    void guest.ended.then(() => group?.remove());
    return guest;
  }

  /** Drops the snapshot, because guests that resumed from it did not become ready. From now on each guest boots. */
  distrustSnapshot(): void {
    if (this.#snapshot === undefined) return;
    this.#log.warn("microVMs did not go on from the saved one; each boots");
    this.#snapshot.close();
    this.#snapshot = undefined;
  }

  /** Releases snapshot and control groups. No guest may be started afterwards. */
  close(): void {
    this.#snapshot?.close();
    this.#groups?.close();
  }
}

/** Control groups if they are available. Without them QEMU still bounds the memory that it gives to a guest. */
function groupsOr(log: Log): Groups | undefined {
  try {
    return Groups.open();
  } catch (err) {
    log.warn({ err }, "microVMs have no control groups of their own");
    return undefined;
  }
}

/** Gives out the smallest free numbers. */
class FreeNumbers {
  readonly #taken = new Set<number>();

  take(): number {
    let number = 0;
    while (this.#taken.has(number)) number += 1;
    this.#taken.add(number);
    return number;
  }

  giveBack(number: number): void {
    this.#taken.delete(number);
  }
}
