/** Is a component there? Each probe answers undefined for yes, else a short reason. None throws; each is bounded. */
import { statSync } from "node:fs";
import { request } from "node:http";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";

const TIMEOUT_MS = 2000;
/** Readiness waits for others: longer than its slowest check. */
const READY_TIMEOUT_MS = 10_000;
const MAX_TEXT = 300;

export interface HttpAnswer {
  status: number;
  body: string;
}

/** Without an answer: a short reason. node:http and not fetch, which refuses some ports. */
export function httpGet(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  timeout = TIMEOUT_MS,
): Promise<HttpAnswer | { reason: string }> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout, headers }, (response) => {
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
  return answer.status === 200 ? undefined : `answers ${answer.status}: ${answer.body.slice(0, MAX_TEXT)}`;
}

/** Likewise of a readiness route, which says why it is not ready. */
export async function readyAnswers(url: string): Promise<string | undefined> {
  const answer = await httpGet(url, {}, READY_TIMEOUT_MS);
  if ("reason" in answer) return answer.reason;
  if (answer.status === 200) return undefined;
  return reasonsIn(answer.body) ?? `answers ${answer.status}: ${answer.body.slice(0, MAX_TEXT)}`;
}

function reasonsIn(body: string): string | undefined {
  try {
    const { reasons } = JSON.parse(body) as { reasons?: unknown };
    const texts = Object.values(reasons ?? {}).filter((text) => typeof text === "string");
    return texts.length === 0 ? undefined : `is not ready: ${texts.join("; ").slice(0, MAX_TEXT)}`;
  } catch {
    return undefined;
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
    socket.once("error", ({ code }: NodeJS.ErrnoException) =>
      // Another user may not ask; what needs Redis tells how it is.
      end(code === "EACCES" ? undefined : `does not answer (${code})`),
    );
    socket.once("data", (data) => end(redisReason(data.toString("latin1"))));
    socket.write("PING\r\n");
  });
}

function redisReason(answer: string): string | undefined {
  if (answer.startsWith("+PONG")) return undefined;
  return answer.startsWith("-MISCONF") ? "cannot write to its disk; is the disk full?" : "is still loading";
}

export async function socketExists(path: string): Promise<string | undefined> {
  try {
    return statSync(path).isSocket() ? undefined : "its socket is no socket";
  } catch {
    return "has not made its socket yet";
  }
}
