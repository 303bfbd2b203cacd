/**
 * The limits in front of the routes: after authentication, before the state of the service and the body are looked at.
 * Where only the body tells what a request is, the bodies that a caller sends at once are limited instead until it is read.
 * Every answer of a limited route tells the caller's window. An execution holds its slot until it has an answer or its client
 * has left, and in any case until its run is over.
 */
import type { Principal } from "@svc/contracts";
import {
  type Config,
  Counter,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  type Redis,
  type Registry,
} from "@svc/service-kit";
import { callerKey, Limiter } from "./limiter.ts";
import { OpenBodies } from "./open-bodies.ts";
import { type Scope, scopeOf, takesSlot } from "./scopes.ts";
import type { Slot } from "./slots.ts";
import { slotsAreTaken, windowHeaders } from "./window.ts";

export interface LimitDeps {
  config: Config;
  redis: Redis;
  registry: Registry;
  principalOf: (request: FastifyRequest) => Principal;
  isAuthenticated: (request: FastifyRequest) => boolean;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** For a route whose body says what it is: counted when it has been read. */
    scopeOfBody?: (body: unknown) => Scope;
  }
}

const isScopedByBody = (request: FastifyRequest) => request.routeOptions.config.scopeOfBody !== undefined;

/** Runs work of a request so that its slot stays taken until the work has ended. */
export type HoldingSlot = <T>(request: FastifyRequest, work: () => Promise<T>) => Promise<T>;

/** Resolves when the connection of the answer has closed; it may have done so before. */
function closing({ raw }: FastifyReply): Promise<void> {
  return raw.closed ? Promise.resolve() : new Promise((resolve) => raw.once("close", () => resolve()));
}

/** To be called before the routes are registered, after what authenticates them. */
export function limits(
  app: HttpServer,
  { config, redis, registry, principalOf, isAuthenticated }: LimitDeps,
): HoldingSlot {
  const limiter = new Limiter(config, redis);
  const slots = new WeakMap<FastifyRequest, Slot>();
  const limited = new Counter<"scope">({
    name: "svc_rate_limited_total",
    help: "Requests refused with 429, by what limited them.",
    labelNames: ["scope"],
    registers: [registry],
  });
  const leave = (request: FastifyRequest): void => {
    const slot = slots.get(request);
    slots.delete(request);
    slot?.release();
  };

  const counted = new WeakSet<FastifyRequest>();
  const enter = async (request: FastifyRequest, reply: FastifyReply, scope: Scope): Promise<void> => {
    counted.add(request);
    const closed = closing(reply);
    const needsSlot = takesSlot(request.method, request.routeOptions.url);
    const { window, refusal, slot } = await limiter.enter(scope, principalOf(request), needsSlot);
    reply.headers(windowHeaders(window));
    if (refusal !== undefined) {
      limited.inc({ scope: refusal.by });
      throw refusal.error;
    }
    if (slot === undefined) return;
    slots.set(request, slot);
    void closed.then(() => leave(request));
  };

  const bodies = new OpenBodies(config.SVC_MAX_CONCURRENT_EXECUTIONS);
  const received = new WeakMap<FastifyRequest, () => void>();
  const receive = (request: FastifyRequest, reply: FastifyReply): void => {
    const leaveBodies = bodies.enter(callerKey(principalOf(request)));
    if (leaveBodies === undefined) {
      limited.inc({ scope: "concurrent_executions" });
      throw slotsAreTaken(config.SVC_MAX_CONCURRENT_EXECUTIONS);
    }
    received.set(request, leaveBodies);
    void closing(reply).then(leaveBodies);
  };

  app.addHook("onRequest", async (request, reply) => {
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    if (isScopedByBody(request)) receive(request, reply);
    else await enter(request, reply, scope);
  });
  app.addHook("preHandler", async (request, reply) => {
    received.get(request)?.();
    const byBody = request.routeOptions.config.scopeOfBody;
    if (byBody !== undefined) await enter(request, reply, byBody(request.body));
  });
  // A body that could not be read counts for the scope of its route.
  app.addHook("onSend", async (request, reply) => {
    if (counted.has(request) || !isScopedByBody(request) || !isAuthenticated(request)) return;
    const scope = scopeOf(request.method, request.routeOptions.url);
    if (scope === undefined) return;
    const { window } = await limiter.enter(scope, principalOf(request), false);
    reply.headers(windowHeaders(window));
  });
  // Before the answer is out: whoever has read it may come again at once.
  app.addHook("onSend", (request, _reply, _payload, done) => {
    leave(request);
    done();
  });
  app.addHook("onClose", async () => limiter.close());

  return (request, work) => slots.get(request)?.during(work) ?? work();
}
