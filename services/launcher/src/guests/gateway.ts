/**
 * Connections to the egress gateway for what guests ask of it. Guests speak plain HTTP on their channel and hold no certificate: with TLS
 * between components the launcher shows its own, as a runner does.
 */
import { connect, isIP } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import type { TlsIdentity } from "@svc/service-kit";

/** `target`: SANDBOX_FORWARD_TARGET, HOST:PORT. */
export function gatewayConnector(target: string, tls: TlsIdentity | undefined): () => Duplex {
  const [host = "", port = ""] = target.split(/:(?=\d+$)/);
  const to = { host, port: Number(port), allowHalfOpen: true };
  if (tls === undefined) return () => connect(to);
  const named = isIP(host) === 0 ? { servername: host } : {};
  return () => connectTls({ ...tls.material, ...to, ...named });
}
