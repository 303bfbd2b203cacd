/** Starts a bare server that the service is compared with, in a process of its own, and ends it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface BareServer {
  url: string;
  pid: number;
  stop: () => Promise<void>;
}

/** `main`: the file to run; it prints its address. */
export async function startBareServer(main: URL, ...args: string[]): Promise<BareServer> {
  const child = spawn(process.execPath, [fileURLToPath(main), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "exit").then(() => Promise.reject(new Error("the bare server did not start"))),
  ]);
  if (child.pid === undefined) throw new Error("the bare server has no process");
  return {
    url: String(url),
    pid: child.pid,
    stop: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
