/**
 * The limits in front of the routes, checked after authentication but before the state of the service and before the body. Where only
 * the body tells the scope, they are checked after it. The API reads few large bodies of a caller at once; further requests wait. Every
 * answer of a limited route reports the caller's window, as far as Redis answers. An execution holds its seat until its answer is ready or its client
 * disconnects, but at least until its run is over. A further round of a program takes another kind of seat in its route; a cancel takes none.
 * An upload or download holds a unit of two semaphores, its caller's and the global one, until its answer is sent or its client is gone.
 */
import type { Principal } from "@svc/contracts";
import {
  type Config,
  type Counter,
  counter,
  type FastifyReply,
  type FastifyRequest,
  failureOf,
  type HttpServer,
  type Redis,
  type Registry,
  whenClosed,
} from "@svc/service-kit";
import { observingAuthorization } from "./authorize-stage.ts";
import { callerKey, Limiter } from "./limiter.ts";
import { OpenByCaller } from "./open-by-caller.ts";
import { OpenTransfers } from "./open-transfers.ts";
import { isTransfer, limitOf, SCOPE_NAMES, type Scope, scopeOf } from "./scopes.ts";
import type { HoldingRound, HoldingSeat, Seat } from "./seats.ts";
import { bodiesAreOpen, limitHeaders, OTHER_LIMITS, RateLimited, windowHeaders } from "./window.ts";

export interface LimitDeps {
  config: Config;
  redis: Redis;
  registry: Registry;
  principalOf: (request: FastifyRequest) => Principal;
  isAuthenticated: (request: FastifyRequest) => boolean;
  /** Throws when this process can take no further execution. */
  refuseWhenFull: () => void;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** For a route whose scope depends on the body: the request is counted after its body is read. */
    scopeOfBody?: (body: unknown) => Scope;
  }
}

/**
 * How many bodies of one caller are read at once before their scope is known. Each may have SVC_HTTP_JSON_LIMIT bytes. Such a
 * request has no seat yet, so this bounds the memory that it holds.
 */
const BODIES_AT_ONCE = 8;
/**
 * How many bodies of starts on /v1/exec are read at once for one caller. Their requests have seats, but there may be many seats, or no
 * limit of them. It is the default number of seats.
 */
const STARTS_AT_ONCE = 20;
/** How many requests of one caller wait until their bodies are read. Such a request holds little more than its connection. */
const BODIES_WAITING = 1000;

const isScopedByBody = (request: FastifyRequest) => request.routeOptions.config.scopeOfBody !== undefined;

const closing = (reply: FastifyReply) => new Promise<void>((resolve) => whenClosed(reply, resolve));

/** Call this after authentication is registered and before the routes are. */
export function limits(
  app: HttpServer,
  deps: LimitDeps,
): { holdingSeat: HoldingSeat; holdingRound: HoldingRound } {
  const { principalOf, isAuthenticated } = deps;
  const gate = new Gate(deps);
  app.addHook("onRequest", async (request, reply) => {
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    const isCountedLater = isScopedByBody(request);
    if (!isCountedLater) await gate.enter(request, reply, scope);
    if (isCountedLater || scope === "executions") await gate.receive(request, reply);
    if (isTransfer(request.method, request.routeOptions.url)) await gate.transfer(request, reply);
  });
  app.addHook("preHandler", async (request, reply) => {
    gate.received(request);
    const byBody = request.routeOptions.config.scopeOfBody;
    if (byBody !== undefined) await gate.enter(request, reply, byBody(request.body));
  });
  // A request whose body could not be read counts in the scope of its route.
  app.addHook("onSend", async (request, reply) => {
    if (gate.hasCounted(request) || !isScopedByBody(request) || !isAuthenticated(request)) return;
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    reply.headers(limitHeaders(limitOf(scope, deps.config)));
    const entry = await gate.limiter.enter(scope, principalOf(request), false).catch(() => undefined);
    if (entry !== undefined) reply.headers(windowHeaders(entry.window));
  });
  // The seat is released before the answer is sent, because a caller may send the next request as soon as it reads the answer.
  app.addHook("onSend", (request, _reply, _payload, done) => {
    gate.leave(request);
    done();
  });
  countRefusals(app, deps.registry);
  app.addHook("onClose", async () => gate.limiter.close());
  return {
    holdingSeat: observingAuthorization(app, deps.registry, (request, work) => gate.during(request, work)),
    holdingRound: (principal, work) => gate.limiter.duringRound(principal, work),
  };
}

/** Counts all refusals, including those that routes throw and those of streams that have already begun. */
function countRefusals(app: HttpServer, registry: Registry): void {
  const limited: Counter<"scope"> = counter(registry, "svc_rate_limited_total");
  for (const scope of [...SCOPE_NAMES, ...OTHER_LIMITS]) limited.inc({ scope }, 0);
  app.addHook("onResponse", (request, _reply, done) => {
    const failure = failureOf(request);
    if (failure instanceof RateLimited) limited.inc({ scope: failure.by });
    done();
  });
}

const openBodies = (atOnce: number, { BODY_TIMEOUT_MS: waitMs }: Config) =>
  new OpenByCaller({ atOnce, waiting: { length: BODIES_WAITING, waitMs, refusal: bodiesAreOpen } });

/** What open requests hold: seats of executions, and units of the semaphores for request bodies, uploads and downloads. */
class Gate {
  readonly limiter: Limiter;
  readonly #config: Config;
  readonly #principalOf: LimitDeps["principalOf"];
  readonly #refuseWhenFull: () => void;
  readonly #bodies: OpenByCaller;
  readonly #starts: OpenByCaller;
  readonly #transfers = new OpenTransfers();
  readonly #seats = new WeakMap<FastifyRequest, Seat>();
  readonly #counted = new WeakSet<FastifyRequest>();
  readonly #leaveBodies = new WeakMap<FastifyRequest, () => void>();

  constructor({ config, redis, principalOf, refuseWhenFull }: LimitDeps) {
    this.limiter = new Limiter(config, redis);
    this.#config = config;
    this.#principalOf = principalOf;
    this.#refuseWhenFull = refuseWhenFull;
    this.#bodies = openBodies(BODIES_AT_ONCE, config);
    this.#starts = openBodies(STARTS_AT_ONCE, config);
  }

  hasCounted(request: FastifyRequest): boolean {
    return this.#counted.has(request);
  }

  /** Counts the request in its caller's window, and takes a seat for an execution. A full process refuses without asking Redis. */
  async enter(request: FastifyRequest, reply: FastifyReply, scope: Scope): Promise<void> {
    this.#counted.add(request);
    reply.headers(limitHeaders(limitOf(scope, this.#config)));
    if (scope === "executions") this.#refuseWhenFull();
    const { window, refusal, seat } = await this.limiter.enter(scope, this.#principalOf(request));
    reply.headers(windowHeaders(window));
    if (refusal !== undefined) throw refusal;
    if (seat === undefined) return;
    this.#seats.set(request, seat);
    void closing(reply).then(() => this.leave(request));
  }

  leave(request: FastifyRequest): void {
    const seat = this.#seats.get(request);
    this.#seats.delete(request);
    seat?.release();
  }

  during<T>(request: FastifyRequest, work: (place: number) => Promise<T>): Promise<T> {
    const seat = this.#seats.get(request);
    return seat === undefined ? work(1) : seat.during(() => work(seat.place));
  }

  /** Waits until the upload or download may use a connection to the file server. */
  transfer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    return this.#transfers.enter(callerKey(this.#principalOf(request)), closing(reply));
  }

  /** Waits until the body of the request may be read. */
  async receive(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const closed = closing(reply);
    const bodies = isScopedByBody(request) ? this.#bodies : this.#starts;
    const entered = bodies.enter(callerKey(this.#principalOf(request)), closed);
    this.#leaveBodies.set(request, await entered);
  }

  received(request: FastifyRequest): void {
    this.#leaveBodies.get(request)?.();
  }
}
