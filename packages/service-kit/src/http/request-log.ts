/**
 * One line for each request: written when its answer is sent or its client has left, also for what is refused before a
 * route sees it. It names the pattern of the route, never the URL, which may hold ids and names.
 */
import { isIP } from "node:net";
import { type ServiceError, shownMs } from "@svc/contracts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "../log.ts";
import { BodyBrokenOff } from "./body-reader.ts";

export interface EndedRequest {
  request: FastifyRequest;
  /** The client closed the connection before the answer was written whole. */
  left: boolean;
  /** What the answer said went wrong, or broke it. */
  error: ServiceError | undefined;
}

export interface RequestLogOptions {
  log: Log;
  /** Routes that probes poll: they are logged at debug, unless they fail with an error. */
  quiet: readonly string[];
  /** What else the line says. */
  fields: (ended: EndedRequest) => object;
}

export const CLIENT_LEFT = 499;

const failures = new WeakMap<FastifyRequest, ServiceError>();

/** The error that a request is answered with. */
export function noteFailure(request: FastifyRequest, error: ServiceError): void {
  failures.set(request, error);
}

/** What a request was answered with that failed; undefined where its client just left. */
export function failureOf(request: FastifyRequest): ServiceError | undefined {
  const failure = failures.get(request);
  return failure instanceof BodyBrokenOff ? undefined : failure;
}

export class RequestLog {
  readonly #options: RequestLogOptions;

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  /** `address`: of the client, as it was when the request came. A connection that has ended has none. */
  ended(request: FastifyRequest, reply: FastifyReply, left: boolean, address: string | undefined): void {
    const { quiet, fields } = this.#options;
    const error = failureOf(request);
    const route = routeOf(request);
    this.#write(error === undefined && quiet.includes(route) ? "debug" : "info", {
      request_id: request.id,
      method: request.method,
      route,
      status: left ? CLIENT_LEFT : reply.statusCode,
      ms: shownMs(reply.elapsedTime || 0),
      ...(address === undefined ? {} : { address }),
      ...(error === undefined ? {} : { error: error.code }),
      ...fields({ request, left, error }),
    });
  }

  /** What reached no route, since it was no HTTP. */
  broken(request_id: string, { status, code }: ServiceError): void {
    this.#write("info", { request_id, route: UNMATCHED, status, error: code });
  }

  #write(level: "debug" | "info", line: object): void {
    this.#options.log[level](line, "request");
  }
}

/**
 * The client's address: of its connection, or what the proxies that are trusted say in X-Forwarded-For. Where that is no
 * address, a client wrote it, and the connection's own counts.
 */
export function clientAddress({ ip, raw }: FastifyRequest): string | undefined {
  return isIP(ip) === 0 ? raw.socket.remoteAddress : ip;
}

export const UNMATCHED = "unmatched";

/** The pattern of the route. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? UNMATCHED;
}
