/**
 * Connections between components of one process (SVC_TOPOLOGY=combined): a pair of streams in memory instead of a loopback socket.
 * A socket would copy each byte twice, and its read buffers would make V8 collect the whole heap. The streams carry the same HTTP,
 * with the same routes, tokens, limits and failures. Used only for the exact address that a server of this process listens on.
 * Chunks are passed on without a copy, so the writer must not change them afterwards.
 */
import type { EventEmitter } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import type { HttpServer } from "./types.ts";

const IDLE_LOOK_MS = 20;

interface Listening {
  server: EventEmitter;
  open: Set<Duplex>;
}

const listening = new Map<string, Listening>();

/** Lets other components of this process connect in memory while the server listens. Closing the server waits for their requests. */
export function acceptFromSameProcess(app: HttpServer): void {
  const server: Server = app.server;
  const open = new Set<Duplex>();
  let key: string | undefined;
  server.once("listening", () => {
    const address = server.address();
    if (address === null || typeof address === "string") return;
    key = keyOf(address);
    listening.set(key, { server, open });
  });
  app.addHook("preClose", (done) => {
    if (key !== undefined) listening.delete(key);
    done();
  });
  app.addHook("onClose", () => closedAll(server, open));
}

/** A connection to the server of this process at the address; undefined when none listens there. */
export function connectInSameProcess(address: string, port: number): Duplex | undefined {
  const found = listening.get(keyOf({ address, port }));
  if (found === undefined) return undefined;
  const [near, far] = connectedEnds();
  // A client that left must not crash the server.
  far.on("error", () => undefined);
  Object.assign(far, { remoteAddress: address, remotePort: 0 });
  found.open.add(far);
  far.once("close", () => found.open.delete(far));
  found.server.emit("connection", far);
  return near;
}

const keyOf = ({ address, port }: Pick<AddressInfo, "address" | "port">) => `${address} ${port}`;

/**
 * One end of a connection, which behaves like a socket: a chunk counts as sent when the other end has room for more, and destroying
 * one end destroys the other. (Node's `duplexPair` counts a chunk as sent when the other end asks for the next one. A client
 * that has its answer never asks.)
 */
class End extends Duplex {
  other: End = this;
  #read: (() => void) | undefined;

  override _read(): void {
    const read = this.#read;
    this.#read = undefined;
    read?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.other.#take(chunk, done);
  }

  #take(chunk: Buffer, done: () => void): void {
    if (this.push(chunk)) done();
    else this.#read = done;
  }

  override _final(done: () => void): void {
    this.other.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Deferred, so that the other end first learns that its last chunks were sent.
    setImmediate(() => this.other.destroy());
    done(error);
  }
}

function connectedEnds(): [End, End] {
  const [one, other] = [new End(), new End()];
  one.other = other;
  other.other = one;
  return [one, other];
}

/** Needed because Node's own `close` of a server waits only for its sockets. */
async function closedAll(server: Server, open: ReadonlySet<Duplex>): Promise<void> {
  while (open.size > 0) {
    server.closeIdleConnections();
    if (open.size === 0) return;
    await new Promise((resolve) => setTimeout(resolve, IDLE_LOOK_MS));
  }
}
