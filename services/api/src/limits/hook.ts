/**
 * The limits in front of the routes: after authentication, before the state of the service and the body are looked at.
 * Where only the body tells what a request is, few bodies of a caller are read at once instead, and the others wait.
 * Every answer of a limited route tells the caller's window, as far as the store can be asked. An execution holds its seat
 * until it has an answer or its client has left, and in any case until its run is over. A further round of a program takes a seat of another
 * kind, when its route makes it; a cancel needs none. An upload or download has a place among those of its caller, and of all,
 * until its answer is written or its client has left.
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
    /** For a route whose body says what it is: counted when it has been read. */
    scopeOfBody?: (body: unknown) => Scope;
  }
}

/**
 * Bodies of a caller that are read at once before they are known; each may have SVC_HTTP_JSON_LIMIT. Until then a request takes no
 * seat, and must not hold memory without bound meanwhile.
 */
const BODIES_AT_ONCE = 8;

const isScopedByBody = (request: FastifyRequest) => request.routeOptions.config.scopeOfBody !== undefined;

const closing = (reply: FastifyReply) => new Promise<void>((resolve) => whenClosed(reply, resolve));

/** To be called before the routes are registered, after what authenticates them. */
export function limits(
  app: HttpServer,
  deps: LimitDeps,
): { holdingSeat: HoldingSeat; holdingRound: HoldingRound } {
  const { principalOf, isAuthenticated } = deps;
  const gate = new Gate(deps);
  app.addHook("onRequest", async (request, reply) => {
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    if (isScopedByBody(request)) await gate.receive(request, reply);
    else await gate.enter(request, reply, scope);
    if (isTransfer(request.method, request.routeOptions.url)) await gate.transfer(request, reply);
  });
  app.addHook("preHandler", async (request, reply) => {
    gate.received(request);
    const byBody = request.routeOptions.config.scopeOfBody;
    if (byBody !== undefined) await gate.enter(request, reply, byBody(request.body));
  });
  // A body that could not be read counts for the scope of its route.
  app.addHook("onSend", async (request, reply) => {
    if (gate.hasCounted(request) || !isScopedByBody(request) || !isAuthenticated(request)) return;
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    reply.headers(limitHeaders(limitOf(scope, deps.config)));
    const entry = await gate.limiter.enter(scope, principalOf(request), false).catch(() => undefined);
    if (entry !== undefined) reply.headers(windowHeaders(entry.window));
  });
  // Before the answer is sent: a caller that has read it may send the next request at once.
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

/** Those of routes too, and of streams that had begun. */
function countRefusals(app: HttpServer, registry: Registry): void {
  const limited: Counter<"scope"> = counter(registry, "svc_rate_limited_total");
  for (const scope of [...SCOPE_NAMES, ...OTHER_LIMITS]) limited.inc({ scope }, 0);
  app.addHook("onResponse", (request, _reply, done) => {
    const failure = failureOf(request);
    if (failure instanceof RateLimited) limited.inc({ scope: failure.by });
    done();
  });
}

/** What the requests in work hold: seats of executions, and places among the bodies that are being read, and the open uploads and downloads. */
class Gate {
  readonly limiter: Limiter;
  readonly #config: Config;
  readonly #principalOf: LimitDeps["principalOf"];
  readonly #refuseWhenFull: () => void;
  readonly #bodies: OpenByCaller;
  readonly #transfers = new OpenTransfers();
  readonly #seats = new WeakMap<FastifyRequest, Seat>();
  readonly #counted = new WeakSet<FastifyRequest>();
  readonly #leaveBodies = new WeakMap<FastifyRequest, () => void>();

  constructor({ config, redis, principalOf, refuseWhenFull }: LimitDeps) {
    this.limiter = new Limiter(config, redis);
    this.#config = config;
    this.#principalOf = principalOf;
    this.#refuseWhenFull = refuseWhenFull;
    this.#bodies = new OpenByCaller({
      atOnce: BODIES_AT_ONCE,
      waiting: {
        length: config.PTC_RESUME_MAX_REQUESTS,
        waitMs: config.BODY_TIMEOUT_MS,
        refusal: bodiesAreOpen,
      },
    });
  }

  hasCounted(request: FastifyRequest): boolean {
    return this.#counted.has(request);
  }

  /** Counts the request in its caller's window, and takes a seat for an execution. A full process asks the store nothing. */
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

  /** Waits until the file server may be asked for what the answer streams. */
  transfer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    return this.#transfers.enter(callerKey(this.#principalOf(request)), closing(reply));
  }

  /** Waits until the body of the request may be read. */
  async receive(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const closed = closing(reply);
    const entered = this.#bodies.enter(callerKey(this.#principalOf(request)), closed);
    this.#leaveBodies.set(request, await entered);
  }

  received(request: FastifyRequest): void {
    this.#leaveBodies.get(request)?.();
  }
}
