import { newId, type UploadedFile } from "@svc/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileApi, startFileApi } from "../../support/file-api.ts";
import { as, errorOf, file, fileClient } from "../../support/file-client.ts";

let api: FileApi;
const { call, upload } = fileClient(() => api);
beforeAll(async () => {
  api = await startFileApi();
});
afterAll(() => api?.stop());

describe("all routes with a file in their path", () => {
  const routes = [
    ["GET", "download/:s/:f"],
    ["HEAD", "download/:s/:f"],
    ["GET", "sessions/:s/objects/:f"],
    ["GET", "files/:s"],
    ["DELETE", "files/:s/:f"],
  ] as const;
  const at = (route: string, session: string, id: string) => route.replace(":s", session).replace(":f", id);

  test.each(routes)("%s %s: foreign and absent look and take the same", async (method, route) => {
    const { files, storage_session_id } = await upload(file("a.txt"));
    const { id } = files[0] as UploadedFile;
    const causes = [
      [storage_session_id, id, "?kind=agent&id=a1"],
      [storage_session_id, id, "?kind=skill&id=a1&version=1"],
      [newId(), id, ""],
      ...(route.includes(":f") ? ([[storage_session_id, newId(), ""]] as const) : []),
    ] as const;
    const bodies = new Set<string>();
    const times: number[] = [];
    const refuse = async (session: string, fileId: string, query: string, user: string): Promise<void> => {
      const start = performance.now();
      const answer = await call(
        at(route, session, fileId) + query,
        as(user, { method, headers: { "x-request-id": "same" } }),
      );
      const text = await answer.text();
      times.push(performance.now() - start);
      expect(answer.status).toBe(404);
      bodies.add(text);
    };
    for (const [session, fileId, query] of causes) await refuse(session, fileId, query, "u1");
    await refuse(storage_session_id, id, "", "u2");
    expect(bodies.size).toBe(1);
    expect(Math.min(...times)).toBeGreaterThan(8);
    expect((await call(at(route, storage_session_id, id), { method })).status).toBe(200);
  });

  test.each(routes)("%s %s: ids have 21 characters", async (method, route) => {
    for (const bad of [
      "short",
      `${newId()}x`,
      `${"a".repeat(20)}%2F`,
      "550e8400-e29b-41d4-a716-446655440000",
    ]) {
      const answers = [await call(at(route, bad, newId()), { method })];
      if (route.includes(":f")) answers.push(await call(at(route, newId(), bad), { method }));
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("invalid_id");
      }
    }
  });

  test.each(routes)("%s %s: the query is checked, each field at most once", async (method, route) => {
    for (const query of [
      "kind=x",
      "kind=agent",
      "kind=skill&id=s",
      "kind=user&kind=user",
      "kind=agent&id=a&id=b",
      "version=1",
    ]) {
      const answer = await call(`${at(route, newId(), newId())}?${query}`, { method });
      expect(answer.status).toBe(400);
      if (method !== "HEAD") expect((await errorOf(answer))[1]).toBe("invalid_request");
    }
    const unknown = await call(`${at(route, newId(), newId())}?version=&x=y`, { method });
    expect(unknown.status).toBe(404);
  });
});
