/**
 * Allows one supervisor per data folder. The lock is a listening abstract unix socket: it is taken atomically, it ends with
 * its process however that process ends, and it leaves no file.
 */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";

export async function takeLock(dataDir: string): Promise<Server | undefined> {
  const name = createHash("sha256").update(dataDir).digest("hex").slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  server.unref();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(`\0svc-${name}`, () => resolve(server));
  });
}
