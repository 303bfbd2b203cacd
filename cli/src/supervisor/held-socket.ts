/**
 * The address of the public API, bound once by the supervisor and inherited by each API process in turn. While one is
 * replaced, connections wait in the kernel's queue for the next: none is refused.
 */
import { BoundSocket, isIP } from "node:net";
import { Problem } from "../problem.ts";

export interface HeldSocket {
  descriptor: number;
  close: () => void;
}

/**
 * Binds without listening: what listens would accept connections, too. `host`: an address, not a name. Undefined for a
 * name, which the API resolves and listens on by itself.
 */
export function holdSocket(host: string, port: number): HeldSocket | undefined {
  if (isIP(host) === 0) return undefined;
  try {
    const socket = new BoundSocket({ host, port });
    return { descriptor: socket.fd(), close: () => socket.close() };
  } catch (error) {
    throw new Problem(
      `the API cannot have the address ${host}:${port} (${(error as NodeJS.ErrnoException).code})`,
      "Check SERVICE_HOST and SERVICE_PORT.",
    );
  }
}
