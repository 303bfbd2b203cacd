import { limitOf, SCOPE_NAMES, SCOPES, scopeOf } from "@svc/api/limits/scopes";
import { openApiDocument } from "@svc/api/openapi/document";
import { loadConfig } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { describe, expect, it } from "vitest";

interface Document {
  paths: Record<string, Record<string, { tags: string[] }>>;
}
const document = JSON.parse(await openApiDocument()) as Document;
const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { tags }]) => ({
    route: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`,
    open: tags.includes("operations"),
  })),
);
const scope = (route: string) => {
  const [method = "", path] = route.split(" ");
  return scopeOf(method, path);
};

/** A protocol of its own, which the document leaves out. */
const UNDOCUMENTED = ["POST /mcp"];

describe("the table of scopes", () => {
  it.each(routes)("$route is limited unless it is open ($open)", ({ route, open }) => {
    expect(scope(route) === undefined).toBe(open);
  });

  it("names routes that exist, each once", () => {
    const named = SCOPE_NAMES.flatMap((name) => [...SCOPES[name].routes]);
    expect([...routes.map(({ route }) => route), ...UNDOCUMENTED]).toEqual(expect.arrayContaining(named));
    expect(new Set(named).size).toBe(named.length);
  });

  it("counts HEAD as GET, and no unknown route", () => {
    expect(scopeOf("HEAD", "/v1/download/:session_id/:fileId")).toBe("downloads");
    expect(scopeOf("HEAD", "/v1/files/:session_id")).toBe("fetches");
    expect(scopeOf("GET", undefined)).toBeUndefined();
    expect(scopeOf("DELETE", "/v1/exec")).toBeUndefined();
  });

  it("has the documented limits", () => {
    const config = loadConfig("api", { SVC_INTERNAL_SERVICE_TOKEN: newSecret() });
    expect(Object.fromEntries(SCOPE_NAMES.map((name) => [name, limitOf(name, config)]))).toEqual({
      executions: { requests: 20, windowMs: 30_000 },
      resumes: { requests: 600, windowMs: 30_000 },
      uploads: { requests: 30, windowMs: 300_000 },
      downloads: { requests: 60, windowMs: 60_000 },
      fetches: { requests: 120, windowMs: 60_000 },
    });
  });
});
