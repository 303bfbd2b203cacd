/**
 * Who calls: decided by the server from the authenticated identity. No header or body field can name a user. Where
 * authentication is off, one fixed local principal calls; everywhere else a request without valid credentials is refused.
 */
import { LOCAL_PRINCIPAL, type Principal, ServiceError } from "@svc/contracts";
import type { Config, FastifyRequest, HttpServer } from "@svc/service-kit";

/** Routes that answer without authentication. */
const OPEN_ROUTES: ReadonlySet<string> = new Set(["/v1/health", "/v1/ready", "/metrics", "/v1/metrics"]);

const principals = new WeakMap<FastifyRequest, Principal>();

export function authentication(app: HttpServer, config: Config): void {
  const off = config.LOCAL_MODE || config.SVC_AUTH_PROVIDER === "none";
  app.addHook("onRequest", (request, _reply, done) => {
    if (OPEN_ROUTES.has(request.routeOptions.url ?? "") || request.is404) return done();
    if (!off)
      return done(new ServiceError("unauthorized", undefined, { headers: { "www-authenticate": "Bearer" } }));
    principals.set(request, LOCAL_PRINCIPAL);
    done();
  });
}

/** The principal of an authenticated request. */
export function principalOf(request: FastifyRequest): Principal {
  const principal = principals.get(request);
  if (principal === undefined) throw new ServiceError("unauthorized");
  return principal;
}
