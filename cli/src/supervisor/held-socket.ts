/**
 * The socket of the public API: the supervisor binds it once, and each API process inherits it. While the API process is
 * replaced, connections wait in the kernel's queue for the next one, so none is refused.
 */
import { BoundSocket, isIP } from "node:net";
import { Problem } from "../problem.ts";

export interface HeldSocket {
  descriptor: number;
  close: () => void;
}

/**
 * Binds without listening, because a listening socket would also accept connections. `host`: an address. Returns undefined
 * for a name, which the API resolves and listens on itself.
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
