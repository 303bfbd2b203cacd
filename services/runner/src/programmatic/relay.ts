/**
 * The tool socket of one program: a unix HTTP server that takes `POST /tool-call` and nothing else, one request per connection. All input is
 * hostile: connections, sizes, times and held bytes are bounded, the program's headers are not trusted, and one program's relay knows nothing of
 * another's. The owner decides what a call is and who answers it. Errors of handlers, the owner's included, go to the owner and no further.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { ArrivalOrder } from "./arrival-order.ts";
import { GrowingBuffer } from "./growing-buffer.ts";
import { BadToolRequest, parseToolRequest, type ToolCall } from "./tool-request.ts";

const MAX_HEADER_BYTES = 4096;
/** A request without progress for this long, while its program runs, is dropped. */
const SLOW_MS = 10_000;
const SWEEP_MS = 1000;
/** An oversized request is read up to this multiple of the limit, so that its sender sees the answer. */
const DISCARD_FACTOR = 16;
/** After this many turns of the event loop without input, nothing is on its way. */
const QUIET_TURNS = 3;

export interface RelayOptions {
  tools: readonly string[];
  /** Largest body of one request. */
  maxBytes: number;
  /** Most bytes held of all incomplete requests together. */
  maxArrivingBytes: number;
  maxConnections: number;
  /** Called for each well-formed call, in the order in which the program made them. */
  onCall: (call: ToolCall, reply: CallReply) => void;
  /** Called when anything comes in. */
  onActivity: () => void;
  /** Called when a handler has thrown: this program cannot be served any more. Must not throw. */
  onError: (error: unknown) => void;
}

/** Replies to one call of the program. Does nothing when the program closed the connection. */
export interface CallReply {
  result: (callId: string, json: string) => void;
  failure: (callId: string, message: string) => void;
  refuse: (status: number, message: string) => void;
}

interface Arriving {
  socket: Socket;
  place: number;
  sinceMs: number;
  used: boolean;
  /** Bytes of its body that are held. */
  bytes: number;
}

export class Relay {
  readonly #options: RelayOptions;
  readonly #server: Server;
  readonly #order: ArrivalOrder<() => void>;
  readonly #arriving = new Map<Socket, Arriving>();
  readonly #sockets = new Set<Socket>();
  readonly #sweeper: NodeJS.Timeout;
  #frozen = false;
  #events = 0;
  #replies = 0;
  #arrivingBytes = 0;
  readonly #sending = new Set<Socket>();

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#order = new ArrivalOrder(this.#guarded((issue) => issue()));
    this.#server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      connectionsCheckingInterval: 2 ** 30,
      headersTimeout: 0,
      requestTimeout: 0,
      keepAlive: false,
    });
    this.#server.maxConnections = options.maxConnections;
    this.#server.on("error", options.onError);
    this.#server.on(
      "connection",
      this.#guarded((socket: Socket) => this.#accept(socket)),
    );
    this.#server.on(
      "request",
      this.#guarded((request, response) => this.#take(request, response)),
    );
    this.#server.on(
      "clientError",
      this.#guarded((_error, socket) => socket.destroy()),
    );
    this.#sweeper = setInterval(
      this.#guarded(() => this.#sweep()),
      SWEEP_MS,
    ).unref();
  }

  /** Wraps an event handler: what it throws ends the program, not the process. */
  #guarded<A extends unknown[]>(handle: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      try {
        handle(...args);
      } catch (error) {
        this.#options.onError(error);
      }
    };
  }

  async listen(path: string): Promise<void> {
    this.#server.listen({ path, readableAll: true, writableAll: true, backlog: 512 });
    await once(this.#server, "listening");
  }

  /** A call is on its way in. */
  get arriving(): boolean {
    return this.#order.waiting > 0;
  }

  /** Bytes held of incomplete requests. */
  get arrivingBytes(): number {
    return this.#arrivingBytes;
  }

  /** Number of events so far, of anything that came in. */
  get events(): number {
    return this.#events;
  }

  /** False when something came in since the count `since`, or is on its way through this process now. */
  async isQuiet(since: number): Promise<boolean> {
    for (let turns = 0; turns < QUIET_TURNS && this.#events === since; turns++) await turn();
    return this.#events === since;
  }

  /** Number of replies to the program so far. */
  get replies(): number {
    return this.#replies;
  }

  /** A reply is not completely in the program's socket yet, so the program may look blocked. */
  get isSending(): boolean {
    return this.#sending.size > 0;
  }

  /** The program is frozen: takes in everything that it has sent. From here on none of its requests counts as slow. */
  async freeze(): Promise<void> {
    this.#frozen = true;
    while (!(await this.isQuiet(this.#events)));
  }

  /** Complete calls no longer wait for earlier ones. */
  flush(): void {
    this.#order.flush();
  }

  thaw(): void {
    this.#frozen = false;
    const nowMs = performance.now();
    for (const arriving of this.#arriving.values()) arriving.sinceMs = nowMs;
  }

  /** May be called again. */
  close(): void {
    clearInterval(this.#sweeper);
    this.#order.close();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #happened(): void {
    this.#events++;
    this.#options.onActivity();
  }

  #countReply(socket: Socket): void {
    const sent = () => this.#sending.delete(socket);
    this.#replies++;
    if (socket.writableFinished || socket.destroyed) return;
    this.#sending.add(socket);
    socket.once("finish", sent).once("close", sent);
  }

  #accept(socket: Socket): void {
    const place = this.#order.accepted();
    this.#sockets.add(socket);
    this.#arriving.set(socket, { socket, place, sinceMs: performance.now(), used: false, bytes: 0 });
    socket.on(
      "close",
      this.#guarded(() => {
        this.#sockets.delete(socket);
        this.#finish(socket);
      }),
    );
    this.#happened();
  }

  /** No call comes from this connection any more. */
  #finish(socket: Socket): void {
    const arriving = this.#arriving.get(socket);
    if (arriving === undefined) return;
    this.#arriving.delete(socket);
    this.#letGo(arriving);
    this.#order.gone(arriving.place);
  }

  #letGo(arriving: Arriving): void {
    this.#arrivingBytes -= arriving.bytes;
    arriving.bytes = 0;
  }

  /** False: all requests together would hold too many bytes. */
  #hold(arriving: Arriving, bytes: number): boolean {
    if (this.#arrivingBytes + bytes > this.#options.maxArrivingBytes) return false;
    this.#arrivingBytes += bytes;
    arriving.bytes += bytes;
    return true;
  }

  #sweep(): void {
    if (this.#frozen) return;
    const nowMs = performance.now();
    for (const { socket, sinceMs } of this.#arriving.values()) {
      if (nowMs - sinceMs > SLOW_MS) socket.destroy();
    }
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const arriving = this.#arriving.get(socket);
    if (arriving === undefined || arriving.used) {
      socket.destroy();
      return;
    }
    arriving.used = true;
    response.shouldKeepAlive = false;
    response.on("error", () => undefined);
    request.on("error", () => undefined);
    const reply = replyOn(response, () => this.#countReply(socket));
    if (request.url !== "/tool-call") this.#refuse(socket, reply, 404, "no such path");
    else if (request.method !== "POST") this.#refuse(socket, reply, 405, "only POST");
    else this.#read(request, arriving, reply);
  }

  #refuse(socket: Socket, reply: CallReply, status: number, message: string): void {
    this.#finish(socket);
    reply.refuse(status, message);
  }

  #read(request: IncomingMessage, arriving: Arriving, reply: CallReply): void {
    const { maxBytes, tools, onCall } = this.#options;
    const { socket } = request;
    const body = new GrowingBuffer();
    let length = 0;
    let refusal: [status: number, message: string] | undefined;
    const take = (chunk: Buffer): void => {
      arriving.sinceMs = performance.now();
      this.#happened();
      length += chunk.length;
      if (length > maxBytes) refusal ??= [413, "the arguments are too large"];
      else if (!this.#hold(arriving, chunk.length))
        refusal ??= [503, "too many large tool calls are on their way"];
      if (refusal === undefined) body.add(chunk);
      else {
        body.clear();
        this.#letGo(arriving);
      }
      if (length > maxBytes * DISCARD_FACTOR) socket.destroy();
    };
    const end = (): void => {
      this.#happened();
      if (refusal !== undefined) {
        this.#refuse(socket, reply, ...refusal);
        return;
      }
      try {
        const call = parseToolRequest(request.headers, body.bytes, tools);
        this.#arriving.delete(socket);
        this.#letGo(arriving);
        this.#order.complete(arriving.place, () => onCall(call, reply));
      } catch (error) {
        if (!(error instanceof BadToolRequest)) throw error;
        this.#refuse(socket, reply, error.status, error.message);
      }
    };
    request.on("data", this.#guarded(take)).on("end", this.#guarded(end));
  }
}

function replyOn(response: ServerResponse, onReply: () => void): CallReply {
  const send = (status: number, type: string, text: string, callId?: string) => {
    if (response.headersSent || response.destroyed) return;
    onReply();
    const body = Buffer.from(text);
    response.writeHead(status, {
      "content-type": type,
      "content-length": body.length,
      connection: "close",
      ...(callId === undefined ? {} : { "x-tool-call-id": callId }),
    });
    response.end(body);
  };
  const plain = "text/plain; charset=utf-8";
  return {
    result: (callId, json) => send(200, "application/json", json, callId),
    failure: (callId, message) => send(422, plain, message, callId),
    refuse: (status, message) => send(status, plain, message),
  };
}
