/**
 * Refuses features that callers expect by header and this service does not offer. These are stateful execution, on every public route
 * when sessions are not kept, and an attached workspace, on the exec routes. Checked after the body is read, as a body field would be.
 */
import { ServiceError } from "@svc/contracts";
import type { FastifyRequest, HttpServer } from "@svc/service-kit";

const PROFILE_HEADER = "x-codeapi-expected-profile";
const WORKSPACE_HEADER = "x-librechat-code-workspace-id";
const EXEC_ROUTES: ReadonlySet<string | undefined> = new Set(["/v1/exec", "/v1/exec/programmatic"]);

/** Call this before the routes are registered. `isPublic`: whether a route is for callers, not for operators. */
export function profiles(
  app: HttpServer,
  isPublic: (request: FastifyRequest) => boolean,
  keepsSessions: boolean,
): void {
  app.addHook("preValidation", async (request) => {
    if (!isPublic(request)) return;
    const { headers, routeOptions } = request;
    if (EXEC_ROUTES.has(routeOptions.url) && headers[WORKSPACE_HEADER] !== undefined) {
      throw new ServiceError("stateful_workspace_unsupported");
    }
    if (headers[PROFILE_HEADER] === "stateful" && !keepsSessions)
      throw new ServiceError("execution_profile_mismatch");
  });
}
