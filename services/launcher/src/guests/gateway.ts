/**
 * Connects the requests of guests to the egress gateway. Guests speak plain HTTP on their channel and hold no certificate. With TLS between
 * components the launcher presents its own certificate, as a runner does.
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
 * Stands in for the gateway while a guest is warmed up: it accepts the outputs of the launcher's own programs and keeps nothing. It closes each
 * connection after its answer, so that the snapshot contains no open connection.
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
