/**
 * Probes whether a component is available. Each returns undefined for yes, otherwise a short reason. None throws, and each
 * has a time limit.
 */
import { statSync } from "node:fs";
import { request } from "node:http";
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";

const TIMEOUT_MS = 2000;
/** A readiness route waits for others, so this is longer than its slowest check. */
const READY_TIMEOUT_MS = 10_000;
const MAX_TEXT = 300;

export interface HttpAnswer {
  status: number;
  body: string;
}

/** Returns a short reason when there is no answer. Uses node:http because fetch refuses some ports. */
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

/** Like `httpAnswers`, for a readiness route, whose answer says why it is not ready. */
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
      // This user may not connect to Redis. The components that need Redis report its health.
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
