/**
 * Writes one log line per request when its answer is sent or its client has left. Requests that are refused before they reach a
 * route get a line, too. The line has the pattern of the route, never the URL, which may contain ids and names.
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
  /** The error in the answer, or the error that broke the answer. */
  error: ServiceError | undefined;
}

export interface RequestLogOptions {
  log: Log;
  /** Routes that probes poll. Their lines have the level debug, unless they fail with an error. */
  quiet: readonly string[];
  /** Additional fields of the line. */
  fields: (ended: EndedRequest) => object;
}

export const CLIENT_LEFT = 499;

const failures = new WeakMap<FastifyRequest, ServiceError>();

/** Remembers the error in the answer to a request. */
export function noteFailure(request: FastifyRequest, error: ServiceError): void {
  failures.set(request, error);
}

/** The error of a failed request; undefined when its client merely left. */
export function failureOf(request: FastifyRequest): ServiceError | undefined {
  const failure = failures.get(request);
  return failure instanceof BodyBrokenOff ? undefined : failure;
}

export class RequestLog {
  readonly #options: RequestLogOptions;

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  /** `address`: the client's address, read when the request came, because a closed connection has none. */
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

  /** Logs a request that reached no route because it was not valid HTTP. */
  broken(request_id: string, { status, code }: ServiceError): void {
    this.#write("info", { request_id, route: UNMATCHED, status, error: code });
  }

  #write(level: "debug" | "info", line: object): void {
    this.#options.log[level](line, "request");
  }
}

/**
 * The client's address: that of its connection, or the one that trusted proxies report in X-Forwarded-For. When that is not an
 * address, a client forged it, and the connection's address counts.
 */
export function clientAddress({ ip, raw }: FastifyRequest): string | undefined {
  return isIP(ip) === 0 ? raw.socket.remoteAddress : ip;
}

export const UNMATCHED = "unmatched";

/** The pattern of the route. */
export function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? UNMATCHED;
}
