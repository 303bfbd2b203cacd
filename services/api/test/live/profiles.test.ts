/** Headers by which callers say what they expect: on every public route of the OpenAPI document. */
import { newId } from "@svc/contracts";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/openapi/document.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

const { paths } = JSON.parse(await openApiDocument()) as {
  paths: Record<string, Record<string, { tags: string[] }>>;
};
const routes = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { tags }]) => ({
    method: method.toUpperCase(),
    path,
    isPublic: !tags.includes("operations"),
  })),
);
const publicRoutes = routes.filter(({ isPublic }) => isPublic);
const START = { code: "1", lang: "py", tools: [] };
const RESUME = { continuation_token: "t", tool_results: [{ call_id: "call_001" }] };

let made: Replicas;
beforeAll(async () => {
  made = await startReplicas(1, OPEN_LIMITS);
});
afterAll(() => made.stop());

async function send(method: string, path: string, header: Record<string, string>, body: unknown = START) {
  const url = new URL(
    path.replace(/\{\w+\}/g, () => newId()),
    made.urls[0],
  );
  const sent = method === "POST" ? { body: JSON.stringify(body) } : {};
  const headers = { "content-type": "application/json", ...header };
  const answer = await fetch(url, { method, headers, ...sent, signal: AbortSignal.timeout(20_000) });
  const text = await answer.text();
  return {
    status: answer.status,
    error: text.startsWith("{") ? (JSON.parse(text).error as string) : undefined,
  };
}

describe("a caller that expects stateful execution", () => {
  const stateful = { "x-codeapi-expected-profile": "stateful" };

  it.each(publicRoutes)("is refused by $method $path", async ({ method, path }) => {
    const { status, error } = await send(method, path, stateful);
    expect(status).toBe(422);
    if (method !== "HEAD") expect(error).toBe("execution_profile_mismatch");
  });

  it("is refused on a resume", async () => {
    const answer = await send("POST", "/v1/exec/programmatic", stateful, RESUME);
    expect(answer).toEqual({ status: 422, error: "execution_profile_mismatch" });
  });

  it("may ask for the health of the service", async () => {
    expect((await send("GET", "/v1/health", stateful)).status).toBe(200);
  });
});

it.each(["default", "other"])("a caller that expects %s is served", async (profile) => {
  const header = { "x-codeapi-expected-profile": profile };
  expect((await send("GET", "/v1/files/{session_id}", header)).error).toBe("file_not_found");
  expect((await send("POST", "/v1/exec/programmatic", header, RESUME)).error).toBe(
    "invalid_continuation_token",
  );
});

describe("an attached workspace", () => {
  const refused = { status: 422, error: "stateful_workspace_unsupported" };

  it.each(["/v1/exec", "/v1/exec/programmatic"])("is refused by %s as header and as field", async (path) => {
    expect(await send("POST", path, { "x-librechat-code-workspace-id": "w" })).toEqual(refused);
    expect(await send("POST", path, {}, { ...START, workspace_instance_id: "w" })).toEqual(refused);
  });
});
