/** The rate limits as data: each scope has one window per principal, which all of its routes share. HEAD counts as GET. */
import type { Config, VariableName } from "@svc/service-kit";

type Count = Extract<VariableName, `${string}MAX_REQUESTS`>;
type Length = Extract<VariableName, `${string}_WINDOW`>;

interface ScopeRow {
  /** The name of the scope in the message of a refusal. */
  what: string;
  requests: Count;
  windowMs: Length;
  routes: readonly string[];
}

export const SCOPES = {
  executions: {
    what: "executions",
    requests: "MAX_REQUESTS",
    windowMs: "RATE_LIMIT_WINDOW",
    routes: ["POST /v1/exec", "POST /v1/exec/programmatic"],
  },
  /** Also resumes, which arrive on a route of the scope `executions`. */
  resumes: {
    what: "resumes and cancels",
    requests: "PTC_RESUME_MAX_REQUESTS",
    windowMs: "PTC_RESUME_WINDOW",
    routes: ["POST /v1/exec/programmatic/cancel"],
  },
  uploads: {
    what: "uploads",
    requests: "UPLOAD_MAX_REQUESTS",
    windowMs: "UPLOAD_LIMIT_WINDOW",
    routes: ["POST /v1/upload", "POST /v1/upload/batch"],
  },
  downloads: {
    what: "downloads",
    requests: "DOWNLOAD_MAX_REQUESTS",
    windowMs: "DOWNLOAD_LIMIT_WINDOW",
    routes: ["GET /v1/download/:session_id/:fileId", "GET /v1/sessions/:id/file"],
  },
  fetches: {
    what: "metadata, list, delete and health requests",
    requests: "FETCH_MAX_REQUESTS",
    windowMs: "FETCH_LIMIT_WINDOW",
    routes: [
      "GET /v1/sessions/:session_id/objects/:fileId",
      "GET /v1/files/:session_id",
      "GET /v1/usage",
      "DELETE /v1/files/:session_id/:fileId",
      "GET /v1/sessions",
      "GET /v1/sessions/:id/files",
      "DELETE /v1/sessions/:id",
      "GET /v1/jobs",
      "GET /v1/jobs/:id",
      "GET /v1/jobs/:id/events",
      "DELETE /v1/jobs/:id",
      "GET /v1/health/detailed",
      "GET /v1/languages",
      "GET /v1/openapi.json",
      "POST /mcp",
    ],
  },
} as const satisfies Record<string, ScopeRow>;

export type Scope = keyof typeof SCOPES;
export const SCOPE_NAMES = Object.keys(SCOPES) as Scope[];

const SCOPE_OF_ROUTE: ReadonlyMap<string, Scope> = new Map(
  SCOPE_NAMES.flatMap((scope) => SCOPES[scope].routes.map((route) => [route, scope] as const)),
);

/** `pattern`: the route as it was registered; undefined for an unknown one. */
export function scopeOf(method: string, pattern: string | undefined): Scope | undefined {
  return SCOPE_OF_ROUTE.get(routeOf(method, pattern));
}

const routeOf = (method: string, pattern: string | undefined) =>
  `${method === "HEAD" ? "GET" : method} ${pattern}`;

/** Routes that transfer at the client's speed and hold a connection to the file server for that long. */
const TRANSFERS: ReadonlySet<string> = new Set([
  ...SCOPES.uploads.routes,
  ...SCOPES.downloads.routes,
  "GET /v1/sessions/:id/files",
]);

export const isTransfer = (method: string, pattern: string | undefined) =>
  TRANSFERS.has(routeOf(method, pattern));

export interface Limit {
  requests: number;
  windowMs: number;
}

export function limitOf(scope: Scope, config: Config): Limit {
  const { requests, windowMs } = SCOPES[scope];
  return { requests: config[requests], windowMs: config[windowMs] };
}
