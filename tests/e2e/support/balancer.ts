/** What a Service of Kubernetes does: a connection goes to one of the addresses that are ready, and stays there however that one ends. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream";

export class Balancer {
  readonly host: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #targets: URL[] = [];
  #next = 0;

  private constructor(server: Server) {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    this.#server = server;
    this.host = `127.0.0.1:${address.port}`;
    server.on("connection", (near) => this.#join(near));
  }

  static async start(): Promise<Balancer> {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Balancer(server);
  }

  add(url: string): void {
    this.#targets.push(new URL(url));
  }

  /** Of the next connection on. */
  remove(url: string): void {
    const { host } = new URL(url);
    this.#targets = this.#targets.filter((target) => target.host !== host);
  }

  #join(near: Socket): void {
    const target = this.#targets[this.#next++ % this.#targets.length];
    near.on("error", () => undefined);
    if (target === undefined) {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ host: target.hostname, port: Number(target.port), allowHalfOpen: true });
    const end = (error: unknown) => {
      if (error) for (const one of [near, far]) one.resetAndDestroy();
    };
    for (const one of [near, far]) this.#sockets.add(one.on("close", () => this.#sockets.delete(one)));
    pipeline(near, far, end);
    pipeline(far, near, end);
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }
}
