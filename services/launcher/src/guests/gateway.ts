/**
 * Connections to the egress gateway for what guests ask of it. Guests speak plain HTTP on their channel and hold no certificate: with TLS
 * between components the launcher shows its own, as a runner does.
 */
import { createServer } from "node:http";
import { connect, isIP } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { connect as connectTls } from "node:tls";
import type { TlsIdentity } from "@svc/service-kit";

/** `target`: SANDBOX_FORWARD_TARGET, HOST:PORT or [IPv6]:PORT. */
export function gatewayConnector(target: string, tls: TlsIdentity | undefined): () => Duplex {
  const [name = "", port = ""] = target.split(/:(?=\d+$)/);
  const host = name.replace(/^\[|\]$/g, "");
  const to = { host, port: Number(port), allowHalfOpen: true };
  if (tls === undefined) return () => connect(to);
  const named = isIP(host) === 0 ? { servername: host } : {};
  return () => connectTls({ ...tls.material, ...to, ...named });
}

/**
 * In the gateway's place for the guest that is warmed up: it takes the outputs of the launcher's own programs, and keeps nothing. Its
 * connections end with each answer, so that none is open in what is saved.
 */
export function discardingGateway(): () => Duplex {
  const server = createServer({ keepAlive: false }, (request, response) => {
    request.on("end", () => response.writeHead(200, { connection: "close" }).end()).resume();
  });
  return () => {
    const [near, far] = duplexPair();
    server.emit("connection", far);
    return near;
  };
}
