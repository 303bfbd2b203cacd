/**
 * The HTTP server of every component: request ids, the error table, 404 and 405, body limits, guards during start-up and
 * shutdown, metrics. Routes throw ServiceError. For any other error a client sees only `internal_error`.
 */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import { Server as NetServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { type ErrorCode, isErrorCode, ServiceError } from "@svc/contracts";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { type serializerCompiler, validatorCompiler } from "fastify-type-provider-zod";
import type { Log } from "../log.ts";
import type { HttpMetrics, ObservedRequest } from "../metrics/http.ts";
import { refuseBrokenRequest } from "./client-error.ts";
import { sendError, toServiceError } from "./errors.ts";
import { type JsonBodyRules, readJsonBodies } from "./json-body.ts";
import {
  CLIENT_LEFT,
  clientAddress,
  failureOf,
  RequestLog,
  type RequestLogOptions,
  routeOf,
  UNMATCHED,
} from "./request-log.ts";
import { type Route, routeTable } from "./route-table.ts";
import { acceptFromSameProcess } from "./same-process.ts";
import { shownBy, type TlsIdentity } from "./tls.ts";
import type { HttpServer } from "./types.ts";

/** The component's current state, for its routes. */
export interface Lifecycle {
  state: "starting" | "running" | "stopping";
}

export interface HttpServerOptions {
  log: Log;
  lifecycle: Lifecycle;
  /** Largest JSON body in bytes. */
  bodyLimit: number;
  json?: Partial<JsonBodyRules>;
  /** Largest size of a request's headers, in bytes. */
  maxHeaderBytes?: number;
  metrics?: HttpMetrics;
  /** Turns on a log line per request, with these additional fields. */
  requestFields?: RequestLogOptions["fields"];
  /** Number of proxies in front: trusts that many of the last entries of X-Forwarded-For. None by default. */
  trustProxy?: number;
  /** Turns on TLS; then the server serves only the components in `callers`. */
  tls?: TlsIdentity | undefined;
  callers?: readonly string[];
  /** Routes that answer in any state: health, readiness, metrics. */
  alwaysOn: readonly string[];
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
/** Node's default. A component that gets longer headers sets its own limit. */
const DEFAULT_HEADER_BYTES = 16 * 1024;
/** Longest time for the headers of a request to arrive. */
const HEADERS_TIMEOUT_MS = 15_000;
/** For components that set no limit for a body. */
const BODY_TIMEOUT_MS = 30_000;
/**
 * How long a stopping server still serves requests on connections that were already open. Longer than CLIENT_IDLE_MS of our own
 * clients, so none of them sends a request on a connection that is closing.
 */
const LATE_REQUESTS_MS = 1500;
const IDLE_LOOK_MS = 50;
/** The method of requests that are not valid HTTP. */
const NO_METHOD = "unknown";
const EARLY_END = "HPE_INVALID_EOF_STATE";

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, lifecycle, alwaysOn, requestFields: fields } = options;
  const lines = fields && new RequestLog({ log, quiet: alwaysOn, fields });
  /** For each connection, the answer to its latest request, until that answer closes. */
  const answers = new WeakMap<Socket, ServerResponse>();
  const app = Fastify({
    loggerInstance: log,
    // Log lines already contain the request id, so a logger per request would only cost time.
    childLoggerFactory: (logger) => logger,
    logController: new Fastify.LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyLimit,
    trustProxy: (_address, hop) => hop < (options.trustProxy ?? 0),
    genReqId: requestId,
    forceCloseConnections: "idle",
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 4096 },
    frameworkErrors: (error, request, reply) => {
      const address = clientAddress(request);
      reply.raw.once("close", () => {
        const left = !reply.raw.writableFinished;
        options.metrics?.observe(observed(request, reply, left));
        lines?.ended(request, reply, left, address);
      });
      void sendError(request, reply, toServiceError(error)).catch(() => reply.raw.destroy());
    },
    clientErrorHandler: (error, socket) => {
      const answer = answers.get(socket);
      // A request whose client closes in the middle of the body has its own log line already. An answer that has begun is cut off.
      if (answer && (error.code === EARLY_END || answer.headersSent)) socket.destroy(error);
      else
        refuseBrokenRequest(error, socket, (id, refusal) => {
          const { status, code } = refusal;
          options.metrics?.observe({ method: NO_METHOD, route: UNMATCHED, status, seconds: 0, code });
          lines?.broken(id, refusal);
        });
    },
    ...serverOptions(options),
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  }) as unknown as HttpServer;
  app.removeContentTypeParser(["text/plain", "application/json"]);
  readJsonBodies(app, { timeoutMs: BODY_TIMEOUT_MS, ...options.json });
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(plainJson);

  const routes = routeTable(app);
  const connections = openConnections(app);
  if (options.tls === undefined) acceptFromSameProcess(app);
  let isClosing = false;
  app.addHook("onRequest", (request, reply, done) => {
    const { socket } = request.raw;
    answers.set(socket, reply.raw);
    reply.raw.once("close", () => answers.get(socket) === reply.raw && answers.delete(socket));
    reply.header("x-request-id", request.id);
    done();
  });
  if (options.tls) serveCallersAlone(app, options.tls, options);
  // Runs after the onRequest hooks, which check routes and credentials, and before the body is read.
  app.addHook("preParsing", (request, _reply, _payload, done) => {
    if (lifecycle.state === "running" || request.is404) return done();
    if (lifecycle.state === "stopping" && !isClosing) return done();
    if (alwaysOn.includes(request.routeOptions.url ?? "")) return done();
    done(new ServiceError(lifecycle.state === "starting" ? "starting_up" : "shutting_down"));
  });
  app.setErrorHandler((error, request, reply) => sendError(request, reply, toServiceError(error, request)));
  app.setNotFoundHandler((request, reply) => {
    const allowed = routes.methodsOf(request.url);
    const error =
      allowed.length > 0
        ? new ServiceError(
            "method_not_allowed",
            `The route does not offer this method; it offers ${allowed.join(" and ")}.`,
            { headers: { allow: allowed.join(", ") } },
          )
        : notFound(routes.findBelow("/v1", request.url));
    return sendError(request, reply, error);
  });
  observeRequests(app, options.metrics, lines);
  app.addHook("preClose", async () => {
    if (lifecycle.state === "stopping") await untilLeft(app, connections, answers);
    isClosing = true;
    closeWhenIdle(app, connections);
  });
  return app;
}

function serverOptions({ maxHeaderBytes = DEFAULT_HEADER_BYTES, tls }: HttpServerOptions) {
  const heads = { headersTimeout: HEADERS_TIMEOUT_MS, maxHeaderSize: maxHeaderBytes };
  if (tls === undefined) return { http: heads };
  // Probes have no certificate, so the handshake accepts all clients. A hook checks the certificate of each request instead.
  const asking = { requestCert: true, rejectUnauthorized: false, handshakeTimeout: HEADERS_TIMEOUT_MS };
  return { https: { ...tls.material, ...heads, ...asking } };
}

function serveCallersAlone(
  app: HttpServer,
  tls: TlsIdentity,
  { alwaysOn, callers = [], log }: Pick<HttpServerOptions, "alwaysOn" | "callers" | "log">,
): void {
  const told = new WeakSet<Socket>();
  tls.follow((material) => (app.server as unknown as HttpsServer).setSecureContext(material));
  app.addHook("onRequest", (request, _reply, done) => {
    if (alwaysOn.includes(request.routeOptions.url ?? "")) return done();
    const socket = request.raw.socket as TLSSocket;
    const shown = shownBy(socket, callers);
    if (shown.isServed) return done();
    if (shown.reason !== undefined && !told.has(socket)) {
      told.add(socket);
      const { reason } = shown;
      log.warn({ request_id: request.id, address: socket.remoteAddress, reason }, "certificate refused");
    }
    done(new ServiceError("unauthorized"));
  });
}

/** Hints at the most common mistake: a path without its prefix. */
function notFound(meant: Route | undefined): ServiceError {
  if (meant === undefined) return new ServiceError("not_found");
  const methods = meant.methods.filter((method) => method !== "HEAD").join(" or ");
  return new ServiceError("not_found", `There is no such route; did you mean ${methods} ${meant.url}?`);
}

/**
 * Accepts no new connections, but serves requests on open ones, and closes each after its answer. Resolves when all connections are
 * closed, or after LATE_REQUESTS_MS.
 */
async function untilLeft(
  { server }: HttpServer,
  connections: ReadonlySet<Socket>,
  answers: WeakMap<Socket, ServerResponse>,
): Promise<void> {
  // The HTTP server's own `close` would also close idle connections, on which a request may be on its way.
  NetServer.prototype.close.call(server);
  for (const socket of connections) {
    const answer = answers.get(socket);
    if (answer?.headersSent) answer.once("finish", () => socket.end());
    else if (answer !== undefined) answer.shouldKeepAlive = false;
  }
  const end = performance.now() + LATE_REQUESTS_MS;
  while (connections.size > 0 && performance.now() < end) await sleep(IDLE_LOOK_MS);
}

/** While the server closes, Node treats a connection without any data as busy until its headers time out. So close it here. */
function closeWhenIdle({ server }: HttpServer, connections: ReadonlySet<Socket>): void {
  const timer = setInterval(() => {
    server.closeIdleConnections();
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
  }, IDLE_LOOK_MS);
  server.once("close", () => clearInterval(timer));
}

function openConnections({ server }: HttpServer): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  const add = (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  };
  // With TLS there are two sockets per connection: the plain one and the TLS socket around it.
  for (const event of ["connection", "secureConnection"]) server.on(event, add);
  return connections;
}

/** Writes answers unchecked, without a copy on the hot path. The schemas only document them, and tests verify them. */
const plainJson: typeof serializerCompiler = () => (data) => JSON.stringify(data);

function requestId(request: { headers: Record<string, string | string[] | undefined> }): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}

function observeRequests(
  app: HttpServer,
  metrics: HttpMetrics | undefined,
  lines: RequestLog | undefined,
): void {
  if (metrics === undefined && lines === undefined) return;
  app.addHook("onRequest", (request, reply, done) => {
    const address = lines && clientAddress(request);
    reply.raw.once("close", () => {
      const left = !reply.raw.writableFinished;
      metrics?.observe(observed(request, reply, left));
      lines?.ended(request, reply, left, address);
    });
    done();
  });
}

function observed(request: FastifyRequest, reply: FastifyReply, left: boolean): ObservedRequest {
  return {
    method: request.method,
    route: routeOf(request),
    status: left ? CLIENT_LEFT : reply.statusCode,
    // Requests that the framework itself refuses have no elapsed time.
    seconds: (reply.elapsedTime || 0) / 1000,
    code: failureOf(request)?.code,
  };
}

/** Passes on an error code of another component only if the error table has it. */
export function knownErrorCode(code: unknown): ErrorCode {
  return isErrorCode(code) ? code : "internal_error";
}
