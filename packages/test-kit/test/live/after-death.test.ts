/** What tests leave when they are killed is cleaned up. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { isAlive } from "@svc/test-kit/jail/host";
import { until } from "@svc/test-kit/system/processes";
import { expect, test } from "vitest";

const GONE_MS = 15_000;
const KIT = new URL("../../src/", import.meta.url);
const OWNER = `
import { startRedis } from "${new URL("components/redis.ts", KIT)}";
import { SmallDisk } from "${new URL("system/small-disk.ts", KIT)}";
const redis = await startRedis();
console.log(JSON.stringify({ folder: new SmallDisk("size=1m").folder, pid: redis.pid, socket: redis.socket }));
setInterval(() => undefined, 1000);
`;

const isMounted = (folder: string) => readFileSync("/proc/self/mounts", "utf8").includes(` ${folder} `);

test.each(["SIGKILL", "SIGINT"] as const)(
  "a small disk and a Redis go with the process that made them: %s",
  async (signal) => {
    const owner = spawn(process.execPath, ["--input-type=module", "--eval", OWNER], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(owner.stdout, "data");
    const { folder, pid, socket } = JSON.parse(String(line)) as {
      folder: string;
      pid: number;
      socket: string;
    };
    expect(isMounted(folder)).toBe(true);
    // As Ctrl-C in a terminal does it: to all of the group.
    process.kill(-(owner.pid ?? 0), signal);
    await until(() => !isMounted(folder) && !existsSync(folder), GONE_MS);
    await until(() => !isAlive(pid) && !existsSync(socket), GONE_MS);
  },
);
