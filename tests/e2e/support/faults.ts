/** Faults of a running system that last as long as some work, and are taken back. Each component is a process of its own. */
import { chmodSync, renameSync } from "node:fs";
import { join } from "node:path";
import { killProcess } from "@svc/test-kit/jail/host";
import { Api } from "@svc/test-kit/system/api";
import { until } from "@svc/test-kit/system/processes";
import type { System } from "@svc/test-kit/system/system";

const HEALED_MS = 90_000;

type Running = Pick<System, "instance" | "pid" | "url">;

/** The work while something is away; afterwards the system runs programs and keeps files again, by itself. */
async function during<T>(system: Running, work: () => Promise<T>, takeBack: () => void): Promise<T> {
  try {
    return await work();
  } finally {
    takeBack();
    await expectToHeal(system);
  }
}

export async function expectToHeal({ url }: Pick<System, "url">): Promise<void> {
  const api = new Api(url);
  const works = async () => {
    const stored = await api.form("/upload", [{ name: "a.txt", content: "a" }]).catch(() => undefined);
    const ran = await api.tryExec({ lang: "bash", code: "true" }).catch(() => undefined);
    return stored?.status === 200 && ran?.status === 200;
  };
  await until(works, HEALED_MS);
}

/** Redis has died, and cannot be started. */
export function withoutRedis<T>(system: Running, work: () => Promise<T>): Promise<T> {
  const program = join(system.instance.runDir, "redis-server");
  renameSync(program, `${program}.away`);
  killProcess(system.pid("redis"));
  return during(system, work, () => renameSync(`${program}.away`, program));
}

/** The file server may not enter its folder. */
export function withoutStorage<T>(system: Running, work: () => Promise<T>): Promise<T> {
  const objects = join(system.instance.dataDir, "objects");
  chmodSync(objects, 0o000);
  return during(system, work, () => chmodSync(objects, 0o700));
}

/** The runner does not find jaild. */
export function withoutJails<T>(system: Running, work: () => Promise<T>): Promise<T> {
  const socket = system.instance.jailSocket;
  renameSync(socket, `${socket}.away`);
  return during(system, work, () => renameSync(`${socket}.away`, socket));
}
