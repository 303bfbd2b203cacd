/** The span of each request that runs a program: from its head to the end of its answer. It is a child of the caller's span. */
import {
  CLIENT_LEFT,
  type EndedRequest,
  type FastifyRequest,
  failureOf,
  type HttpServer,
  runAttributes,
  type Span,
  type TracedRun,
  type Tracing,
  traceIdOf,
  whenClosed,
} from "@svc/service-kit";
import { noteRun, RUNS_PROGRAMS } from "./request-log.ts";

const spans = new WeakMap<FastifyRequest, Span>();

/** Undefined: the request is not traced. */
export function traceOf(request: FastifyRequest): Span | undefined {
  return spans.get(request);
}

/** Call this before any other hook is registered. `fields`: the log fields of a request that has ended. */
export function traceRequests(
  app: HttpServer,
  tracing: Tracing,
  fields: (ended: EndedRequest) => TracedRun,
): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { method, headers } = request;
    const route = request.routeOptions.url;
    if (route === undefined || !RUNS_PROGRAMS.has(route)) return done();
    const span = tracing.begin(`${method} ${route}`, "server", headers, {
      "http.request.method": method,
      "http.route": route,
      "url.scheme": request.protocol,
      "url.path": route,
    });
    spans.set(request, span);
    noteRun(request, { trace_id: traceIdOf(span.context) });
    whenClosed(reply, () => {
      const left = !reply.raw.writableFinished;
      const status = left ? CLIENT_LEFT : reply.statusCode;
      const error = failureOf(request);
      const run = runAttributes({ ...fields({ request, left, error }), error: error?.code });
      span.end({ ...run, "http.response.status_code": status }, status >= 500);
    });
    done();
  });
}
