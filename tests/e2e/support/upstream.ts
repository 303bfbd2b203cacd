/** What stands behind a proxy where a test must say itself when something is sent: an HTTP server, and a gate on the way to one. */
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as listen, type Server, type Socket } from "node:net";
import { pipeline, Transform } from "node:stream";

export interface Upstream {
  port: number;
  /** The next request that comes, and its answer, which the test writes. */
  next: () => Promise<[request: IncomingMessage, response: ServerResponse]>;
  stop: () => Promise<void>;
}

/** Answers /v1/health by itself, by which a proxy is known to be ready. */
export async function startUpstream(): Promise<Upstream> {
  const server = createServer((request, response) => {
    if (request.url === "/v1/health") response.end("{}");
    else server.emit("of-a-test", request, response);
  });
  const port = await portOf(server);
  return {
    port,
    next: async () => (await once(server, "of-a-test")) as [IncomingMessage, ServerResponse],
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

export interface Gate {
  port: number;
  /** From now on nothing more of the target's answers goes through than `pass` lets. */
  hold: () => void;
  /** So many bytes more, of whatever connection. */
  pass: (bytes: number) => void;
  /** Settles when all of that has gone through and more is there. */
  holds: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Connections to it lead to `target` on this machine. */
export async function startGate(target: number): Promise<Gate> {
  let allowed = Number.POSITIVE_INFINITY;
  const waiting = new Set<() => void>();
  const news = new EventEmitter();
  const sockets = new Set<Socket>();
  const held = () =>
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const go = (rest: Buffer): void => {
          const piece = rest.subarray(0, Math.min(allowed, rest.length));
          allowed -= piece.length;
          if (piece.length > 0) this.push(piece);
          if (piece.length === rest.length) {
            done();
            return;
          }
          const again = () => {
            waiting.delete(again);
            go(rest.subarray(piece.length));
          };
          waiting.add(again);
          news.emit("held");
        };
        go(chunk);
      },
    });
  const server = listen((socket) => {
    const far = connect(target, "127.0.0.1");
    for (const end of [socket, far]) sockets.add(end.on("close", () => sockets.delete(end)));
    pipeline(socket, far, () => undefined);
    pipeline(far, held(), socket, () => undefined);
  });
  const port = await portOf(server);
  return {
    port,
    hold: () => {
      allowed = 0;
    },
    pass: (bytes) => {
      allowed += bytes;
      for (const again of [...waiting]) again();
    },
    holds: async () => {
      if (waiting.size === 0) await once(news, "held");
    },
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

async function portOf(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}
