/**
 * Has components collect their garbage, so that their memory is what they need and not what they have not tidied up yet.
 * Node's inspector, which a signal starts, listens on one port for all processes: one after the other is asked.
 */
import { readlinkSync } from "node:fs";
import { basename } from "node:path";
import { identify, signalProcess } from "@svc/cli/system/process";
import { until } from "./processes.ts";

const INSPECTOR = "http://127.0.0.1:9229/json";
const ANSWER_MS = 20_000;
const CLOSE = "process.getBuiltinModule('node:inspector').close()";

/** Of these processes those that are Node. */
export async function collectGarbage(pids: readonly string[]): Promise<void> {
  for (const pid of pids) {
    if (basename(readlinkSync(`/proc/${pid}/exe`)) === "node") await collectIn(Number(pid));
  }
}

async function collectIn(pid: number): Promise<void> {
  const found = identify(pid);
  if (found === undefined) throw new Error(`${pid} does not run`);
  if ((await inspector()) !== undefined)
    throw new Error("something else listens where Node's inspector does");
  signalProcess(found, "SIGUSR1");
  let address: string | undefined;
  await until(async () => {
    address = await inspector();
    return address !== undefined;
  }, ANSWER_MS);
  const socket = new WebSocket(address ?? "");
  const next = (event: "open" | "message") =>
    new Promise<Event>((resolve, reject) => {
      socket.addEventListener(event, resolve, { once: true });
      socket.addEventListener("close", () => reject(new Error(`${pid} has closed its inspector`)), {
        once: true,
      });
    });
  const ask = async (id: number, method: string, params = {}) => {
    const answer = next("message");
    socket.send(JSON.stringify({ id, method, params }));
    await answer;
  };
  await next("open");
  await ask(1, "HeapProfiler.collectGarbage");
  // The last word of the inspector is that it closes.
  await ask(2, "Runtime.evaluate", { expression: CLOSE }).catch(() => undefined);
  socket.close();
  await until(async () => (await inspector()) === undefined, ANSWER_MS);
}

/** The address of the inspector that listens; undefined when none does. */
async function inspector(): Promise<string | undefined> {
  const answer = await fetch(INSPECTOR, { headers: { connection: "close" } }).catch(() => undefined);
  const [found] = ((await answer?.json()) ?? []) as { webSocketDebuggerUrl: string }[];
  return found?.webSocketDebuggerUrl;
}
