/**
 * How the calls of an MCP message reach the API: over its own address, with the credentials of the message. So each call is
 * authenticated, limited and logged like any other call of its caller, and what it makes belongs to that caller.
 */
import type { AddressInfo } from "node:net";
import type { FastifyRequest, HttpServer } from "@svc/service-kit";

const PASSED = [
  "authorization",
  "x-api-key",
  "host",
  "x-forwarded-for",
  "traceparent",
  "tracestate",
] as const;
/** The address under which a server that listens on all addresses reaches itself. */
const SELF: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

export function ownAddress({ server }: HttpServer): string {
  const { address, port } = server.address() as AddressInfo;
  const host = SELF[address] ?? address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

export function innerHeaders(request: FastifyRequest): Record<string, string> {
  const passed = PASSED.flatMap((name) => {
    const value = request.headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return { ...Object.fromEntries(passed), "x-request-id": request.id };
}
