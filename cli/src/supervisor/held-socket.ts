/**
 * The address of the public API, bound once by the supervisor and inherited by each API process in turn. While one is
 * replaced, connections wait in the kernel's queue for the next: none is refused.
 */
import net from "node:net";
import { Problem } from "../problem.ts";

export interface HeldSocket {
  descriptor: number;
  close: () => void;
}

interface Handle {
  fd: number;
  close: () => void;
}

/** Of node:net and not documented; Node is pinned. It binds without listening: what listens would accept connections, too. */
type Bind = (address: string, port: number, family: 4 | 6, fd: -1, flags: 0) => Handle | number;

/** `host`: an address, not a name. Undefined for a name, which the API resolves and listens on by itself. */
export function holdSocket(host: string, port: number): HeldSocket | undefined {
  const family = net.isIP(host);
  if (family === 0) return undefined;
  const bind = (net as unknown as { _createServerHandle: Bind })._createServerHandle;
  const handle = bind(host, port, family as 4 | 6, -1, 0);
  if (typeof handle === "number")
    throw new Problem(
      `the API cannot have the address ${host}:${port}`,
      "Check SERVICE_HOST and SERVICE_PORT.",
    );
  return { descriptor: handle.fd, close: () => handle.close() };
}
