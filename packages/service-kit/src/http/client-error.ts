/** Answers requests that are not valid HTTP. They never reach a route, but they get an error from the error table like any other. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { errorBody, ServiceError } from "@svc/contracts";

const REASONS: Record<string, { status: number; line: string; message: string }> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    line: "Request Header Fields Too Large",
    message: "The request headers are larger than allowed.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    line: "Request Timeout",
    message: "The request headers did not arrive in time.",
  },
};
/** Enough for a client that reads its answer. After this the connection closes, even if the client keeps its side open. */
const LINGER_MS = 2000;
const OTHER = { status: 400, line: "Bad Request", message: "The request is not valid HTTP." };

/** `note` receives the answer. */
export function refuseBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  note?: (requestId: string, refusal: ServiceError) => void,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy(error);
    return;
  }
  const { status, line, message } = REASONS[error.code ?? ""] ?? OTHER;
  const id = randomUUID();
  const refusal = new ServiceError("invalid_request", message, { status });
  note?.(id, refusal);
  const body = JSON.stringify(errorBody(refusal, id));
  const head = [
    `HTTP/1.1 ${status} ${line}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${id}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
