/**
 * Authenticates each request once, before its body is read, from its credentials alone. Every refusal is the same 401; its cause goes
 * to the log and to a metric. No address is locked out after failures, because a proxy's address stands for many users. Routes learn
 * the caller only from `principalOf` and `planOf`.
 */
import { type Principal, ServiceError } from "@svc/contracts";
import { counter, type FastifyRequest, type HttpServer, type Registry } from "@svc/service-kit";
import type { Identity, IdentityProvider } from "./auth/provider.ts";
import { REFUSALS, type Refusal, TokenRefused } from "./auth/refused.ts";
import { CONSOLE_PATHS } from "./console/routes.ts";
import { PAGES } from "./openapi/routes.ts";

/** Routes that answer without authentication. */
const OPEN_ROUTES: ReadonlySet<string> = new Set([
  "/v1/health",
  "/v1/ready",
  "/metrics",
  "/v1/metrics",
  ...PAGES,
  ...CONSOLE_PATHS,
]);

/** Says what to send and where to read more, but not what was wrong. */
const UNAUTHORIZED = "Send a valid access token: Authorization: Bearer <token>, see docs/authentication.md";

const callers = new WeakMap<FastifyRequest, Identity>();

export function authentication(app: HttpServer, provider: IdentityProvider, registry: Registry): void {
  const failures = counter(registry, "svc_auth_failures_total");
  for (const reason of REFUSALS) failures.inc({ reason }, 0);
  const note = (request: FastifyRequest, reason: Refusal, cause: string): void => {
    failures.inc({ reason });
    request.log.info({ request_id: request.id, reason, cause }, "authentication failed");
  };
  app.addHook("onRequest", async (request) => {
    if (OPEN_ROUTES.has(request.routeOptions.url ?? "") || request.is404) return;
    try {
      const caller = await provider.identify(request.raw);
      callers.set(request, caller);
      const { evidence } = caller;
      if (evidence !== undefined) request.log.debug({ request_id: request.id, ...evidence }, "authenticated");
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      note(request, error.reason, error.message);
      throw unauthorized();
    }
  });
}

/** The principal of an authenticated request. */
export function principalOf(request: FastifyRequest): Principal {
  return callerOf(request).principal;
}

/** The plan that an authenticated request's credential names. */
export function planOf(request: FastifyRequest): string | undefined {
  return callerOf(request).planId;
}

function callerOf(request: FastifyRequest): Identity {
  const caller = callers.get(request);
  if (caller === undefined) throw unauthorized();
  return caller;
}

function unauthorized(): ServiceError {
  return new ServiceError("unauthorized", UNAUTHORIZED, { headers: { "www-authenticate": "Bearer" } });
}

export function isAuthenticated(request: FastifyRequest): boolean {
  return callers.has(request);
}
