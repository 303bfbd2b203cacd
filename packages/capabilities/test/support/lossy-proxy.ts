/** A unix socket before a server's own that can keep the server's answers to itself, as a connection does that breaks. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface LossyProxy {
  socket: string;
  /** While true, answers are dropped; calls still reach the server. */
  swallow: boolean;
  /** Breaks all connections. */
  cut: () => void;
  stop: () => Promise<void>;
}

export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-proxy-"));
  const open = new Set<Socket>();
  const proxy: LossyProxy = {
    socket: join(directory, "proxy.sock"),
    swallow: false,
    cut: () => {
      for (const socket of open) socket.destroy();
    },
    stop: async () => {
      proxy.cut();
      server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  const server = createServer((near) => {
    const far = connect(target);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket);
      socket
        .on("error", () => undefined)
        .once("close", () => {
          open.delete(socket);
          other.destroy();
        });
    }
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => {
      if (!proxy.swallow) near.write(bytes);
    });
  });
  server.listen(proxy.socket);
  await once(server, "listening");
  return proxy;
}
