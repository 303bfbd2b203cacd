/**
 * Stands between the components: every connection that one opens to another goes through here, and can be cut, held or made slow.
 * Who opened a connection is known by the user of its socket, since each component has a user of its own. Connections of others,
 * such as the supervisor's, go through unhindered.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import {
  connect,
  createServer,
  type IpcNetConnectOpts,
  type Server,
  type Socket,
  type TcpNetConnectOpts,
} from "node:net";
import { pipeline, Transform } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MS = 10;

interface State {
  /** How many faults that are under way cut it, hold it. */
  cut: number;
  held: number;
  /** Sum of the delays of each piece. */
  lateMs: number;
}

export interface Target {
  /** Its name, as it stands in the names of links. */
  name: string;
  /** Port on 127.0.0.1 under which the others know it. */
  port: number;
  at: TcpNetConnectOpts | IpcNetConnectOpts;
}

export class Links {
  readonly #nameOf: (uid: number) => string | undefined;
  readonly #states = new Map<string, State>();
  readonly #sockets = new Map<string, Set<Socket>>();
  readonly #doors: Door[] = [];
  #waiting: (() => void)[] = [];

  /** `nameOf`: the component that has a user id. */
  constructor(nameOf: (uid: number) => string | undefined) {
    this.#nameOf = nameOf;
  }

  async open({ name, port, at }: Target): Promise<void> {
    const door = new Door(port, at, (near) => this.#join(near, name, door));
    this.#doors.push(door);
    await door.open();
  }

  /** Ends its connections, and each further one. What is returned takes it back. */
  cut(link: string): () => void {
    const takeBack = this.#change(link, { cut: 1 });
    for (const socket of this.#socketsOf(link)) reset(socket);
    return takeBack;
  }

  hold(link: string): () => void {
    return this.#change(link, { held: 1 });
  }

  slow(link: string, lateMs: number): () => void {
    return this.#change(link, { lateMs });
  }

  async close(): Promise<void> {
    const closed = this.#doors.map((door) => door.close());
    for (const sockets of this.#sockets.values()) for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  }

  #change(link: string, { cut = 0, held = 0, lateMs = 0 }: Partial<State>): () => void {
    const state = this.#stateOf(link);
    const add = (sign: 1 | -1) => {
      state.cut += sign * cut;
      state.held += sign * held;
      state.lateMs += sign * lateMs;
      for (const look of this.#waiting.splice(0)) look();
    };
    add(1);
    return () => add(-1);
  }

  #join(near: Socket, name: string, door: Door): void {
    const link = `${this.#nameOf(ownerOf(near.remotePort, door.port) ?? -1) ?? "others"}>${name}`;
    near.on("error", () => undefined);
    if (this.#stateOf(link).cut > 0) {
      reset(near);
      return;
    }
    const far = connect({ ...door.at, allowHalfOpen: true } as TcpNetConnectOpts);
    const sockets = this.#socketsOf(link);
    for (const end of [near, far]) sockets.add(end.on("close", () => sockets.delete(end)));
    far.on("end", () => door.look()).on("error", () => door.look());
    const end = (error: unknown) => {
      if (error) for (const one of [near, far]) reset(one);
    };
    pipeline(near, this.#way(link), far, end);
    pipeline(far, this.#way(link), near, end);
  }

  #way(link: string): Transform {
    const state = this.#stateOf(link);
    const pass = (go: () => void) => {
      if (state.held > 0) this.#waiting.push(() => pass(go));
      else if (state.lateMs > 0) setTimeout(go, state.lateMs);
      else go();
    };
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => pass(() => done(null, chunk)),
      flush: (done) => pass(() => done()),
    });
  }

  #stateOf(link: string): State {
    const state = this.#states.get(link) ?? { cut: 0, held: 0, lateMs: 0 };
    this.#states.set(link, state);
    return state;
  }

  #socketsOf(link: string): Set<Socket> {
    const sockets = this.#sockets.get(link) ?? new Set();
    this.#sockets.set(link, sockets);
    return sockets;
  }
}

/** The user of the other end of a connection on loopback. */
function ownerOf(from = 0, to: number): number | undefined {
  const hex = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const row = readFileSync("/proc/net/tcp", "latin1")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, remote]) => local === hex(from) && remote === hex(to));
  return row === undefined ? undefined : Number(row[7]);
}

const isTcp = (socket: Socket) => socket.remotePort !== undefined;

/** As when the other end has died. */
function reset(socket: Socket): void {
  if (isTcp(socket)) socket.resetAndDestroy();
  else socket.destroy();
}

/** Listens for a component as long as the component itself listens: who connects to one that has died is refused, as without us. */
class Door {
  readonly port: number;
  readonly at: Target["at"];
  readonly #joins: (near: Socket) => void;
  #server: Server | undefined;
  #isLooking = false;
  #isOver = false;

  constructor(port: number, at: Target["at"], joins: (near: Socket) => void) {
    this.port = port;
    this.at = at;
    this.#joins = joins;
  }

  async open(): Promise<void> {
    this.#server = createServer({ allowHalfOpen: true }, this.#joins);
    await once(this.#server.listen(this.port, "127.0.0.1"), "listening");
  }

  /** One of its connections has ended: is the component still there? */
  look(): void {
    if (this.#isLooking || this.#isOver) return;
    this.#isLooking = true;
    void this.#follow().finally(() => {
      this.#isLooking = false;
    });
  }

  async #follow(): Promise<void> {
    if (await this.#answers()) return;
    this.#server?.close();
    while (!(await this.#answers())) {
      if (this.#isOver) return;
      await sleep(LOOK_MS);
    }
    if (!this.#isOver) await this.open();
  }

  async #answers(): Promise<boolean> {
    const far = connect(this.at as TcpNetConnectOpts);
    const isThere = await once(far, "connect").then(
      () => true,
      () => false,
    );
    far.destroy();
    return isThere;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    if (this.#server?.listening !== true) return;
    this.#server.close();
    await once(this.#server, "close");
  }
}
