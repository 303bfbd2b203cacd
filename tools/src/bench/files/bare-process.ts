/** Starts the bare server of bare-server.ts on a folder, and ends it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface BareServer {
  url: string;
  pid: number;
  stop: () => Promise<void>;
}

const MAIN = fileURLToPath(new URL("./bare-server.ts", import.meta.url));

export async function startBareServer(folder: string): Promise<BareServer> {
  const child = spawn(process.execPath, [MAIN, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "exit").then(() => Promise.reject(new Error("the bare file server did not start"))),
  ]);
  if (child.pid === undefined) throw new Error("the bare file server has no process");
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
