/** Is a component there? Each probe answers undefined for yes, else a short reason. None throws; each is bounded. */
import { statSync } from "node:fs";
import { request } from "node:http";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";

const TIMEOUT_MS = 2000;

export interface HttpAnswer {
  status: number;
  body: string;
}

/** Without an answer: a short reason. node:http and not fetch, which refuses some ports. */
export function httpGet(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpAnswer | { reason: string }> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout: TIMEOUT_MS, headers }, (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, body }),
        () => resolve({ reason: "breaks off its answer" }),
      );
    });
    sent.once("timeout", () => sent.destroy(new Error("timeout")));
    sent.once("error", (error: NodeJS.ErrnoException) => {
      const reason = error.code ?? error.message;
      resolve({
        reason: reason === "ECONNREFUSED" ? "does not listen yet" : `does not answer (${reason})`,
      });
    });
    sent.end();
  });
}

export async function httpAnswers(url: string): Promise<string | undefined> {
  const answer = await httpGet(url);
  if ("reason" in answer) return answer.reason;
  return answer.status === 200 ? undefined : `answers ${answer.status}: ${answer.body.slice(0, 300)}`;
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
