/**
 * Measures the stage `authorize` of an execution, from the head of its request to its job. The time in which the body arrives is
 * left out, because it depends on the client.
 */
import {
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  type Registry,
  stageMetrics,
} from "@svc/service-kit";
import type { HoldingSeat } from "./seats.ts";

interface Arrival {
  reply: FastifyReply;
  bodyMs: number;
}

/**
 * Wraps `holdingSeat`, which an execution calls when everything is checked. Call this after the hooks that authenticate and limit
 * requests are registered.
 */
export function observingAuthorization(
  app: HttpServer,
  registry: Registry,
  holdingSeat: HoldingSeat,
): HoldingSeat {
  const stages = stageMetrics(registry);
  const arrivals = new WeakMap<FastifyRequest, Arrival>();
  app.addHook("preParsing", (request, reply, _payload, done) => {
    arrivals.set(request, { reply, bodyMs: -reply.elapsedTime });
    done();
  });
  app.addHook("preValidation", (request, reply, done) => {
    const arrival = arrivals.get(request);
    if (arrival !== undefined) arrival.bodyMs += reply.elapsedTime;
    done();
  });
  return (request, work) => {
    const arrival = arrivals.get(request);
    if (arrival !== undefined)
      stages.observe("authorize", (arrival.reply.elapsedTime - arrival.bodyMs) / 1000);
    return holdingSeat(request, work);
  };
}
