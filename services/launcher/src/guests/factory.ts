/** Boots guests as the configuration says. Each has a user of its own, which no other living guest has. */
import { connect } from "node:net";
import type { Config, Log } from "@svc/service-kit";
import type { Monitor } from "../monitor/monitor.ts";
import { guestEnvironment } from "./environment.ts";
import { Guest } from "./guest.ts";

/** An emulated processor is many times slower. */
const BOOT_MS = { kvm: 60_000, tcg: 300_000 };

export function guestFactory(
  config: Config,
  monitor: Monitor,
  accelerator: keyof typeof BOOT_MS,
  log: Log,
): () => Guest {
  const env = guestEnvironment(config);
  const [host = "", port = ""] = config.SANDBOX_FORWARD_TARGET.split(/:(?=\d+$)/);
  const users = new FreeNumbers();
  return () => {
    const number = users.take();
    const guest = new Guest({
      monitor,
      machine: {
        image: config.LAUNCHER_ROOTFS,
        ramMib: config.LAUNCHER_RAM_MIB,
        vcpus: config.LAUNCHER_VCPUS,
        logLevel: config.LAUNCHER_LOG_LEVEL,
        user: { uid: config.SANDBOX_JOB_UID_BASE + number, gid: config.SANDBOX_JOB_GID_BASE + number },
        onConsole: (line) => log.info({ guest: number, line }, "console of a microVM"),
      },
      env,
      connectGateway: () => connect({ host, port: Number(port), allowHalfOpen: true }),
      bootMs: BOOT_MS[accelerator],
    });
    void guest.ended.then(() => users.giveBack(number));
    return guest;
  };
}

/** The smallest numbers that nobody has. */
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
