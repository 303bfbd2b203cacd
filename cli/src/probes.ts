/** Is a component there? Each probe answers undefined for yes, else a short reason. None throws; each is bounded. */
import { statSync } from "node:fs";
import { createConnection } from "node:net";

const TIMEOUT_MS = 2000;

export async function httpAnswers(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const body = await response.text();
    return response.ok ? undefined : `answers ${response.status}: ${body.slice(0, 300)}`;
  } catch (error) {
    const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
    return cause?.code === "ECONNREFUSED"
      ? "does not listen yet"
      : `does not answer (${cause?.code ?? (error as Error).name})`;
  }
}

export function redisAnswers(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createConnection({ path });
    const end = (reason?: string) => {
      socket.destroy();
      resolve(reason);
    };
    socket.setTimeout(TIMEOUT_MS, () => end("does not answer"));
    socket.once("error", (error) => end(`does not answer (${(error as NodeJS.ErrnoException).code})`));
    socket.once("data", (data) =>
      end(data.toString("latin1").startsWith("+PONG") ? undefined : "is still loading"),
    );
    socket.write("PING\r\n");
  });
}

export async function socketExists(path: string): Promise<string | undefined> {
  try {
    return statSync(path).isSocket() ? undefined : "its socket is no socket";
  } catch {
    return "has not made its socket yet";
  }
}
