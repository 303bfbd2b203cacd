/** A way to a Redis on which a test holds one command, or its answer: the moment before or after a step that Redis records. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pipeline, Transform } from "node:stream";

export interface RedisGate {
  port: number;
  /** Settles when the next command with this argument, or its answer, is held. Other connections go on. */
  hold: (what: "command" | "answer", argument: string) => Promise<void>;
  /** What is held goes on, if its connection still lives. */
  release: () => void;
  stop: () => Promise<void>;
}

interface Wanted {
  what: "command" | "answer";
  text: string;
  held: () => void;
}

/** After a restart Redis does not know a script, and its client sends it whole. */
const isUnknownScript = (answer: Buffer) => answer.toString("latin1", 0, 9) === "-NOSCRIPT";

/** Connections to it lead to the Redis on the unix socket. */
export async function startRedisGate(socketPath: string): Promise<RedisGate> {
  let wanted: Wanted | undefined;
  let waiting: (() => void)[] = [];
  const sockets = new Set<Socket>();

  const ways = () => {
    let watched: Wanted | undefined;
    const commands = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        if (wanted === undefined || !chunk.includes(wanted.text)) return done(null, chunk);
        const found = wanted;
        wanted = undefined;
        if (found.what === "answer") {
          watched = found;
          return done(null, chunk);
        }
        waiting.push(() => done(null, chunk));
        found.held();
      },
    });
    const answers = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        if (watched === undefined) return done(null, chunk);
        const found = watched;
        watched = undefined;
        if (isUnknownScript(chunk)) {
          wanted = found;
          return done(null, chunk);
        }
        waiting.push(() => done(null, chunk));
        found.held();
      },
    });
    return { commands, answers };
  };

  const server = createServer((near) => {
    const far = connect(socketPath);
    for (const end of [near, far]) sockets.add(end.on("close", () => sockets.delete(end)));
    const { commands, answers } = ways();
    pipeline(near, commands, far, () => undefined);
    pipeline(far, answers, near, () => undefined);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    hold: (what, argument) =>
      new Promise((held) => {
        wanted = { what, text: `${argument}\r\n`, held };
      }),
    release: () => {
      wanted = undefined;
      for (const go of waiting.splice(0)) go();
      waiting = [];
    },
    stop: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
