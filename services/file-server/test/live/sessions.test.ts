import { newId, objectRecordKey } from "@svc/contracts";
import { describe, expect, test } from "vitest";
import { call, errorOf, OWN, objectPath, PUT_HEADERS, putObject, redis, TOKEN } from "../support/server.ts";

describe("a listing", () => {
  test("shows the objects of the session in each detail", async () => {
    const session = newId();
    const file = newId();
    const path = objectPath(session, file);
    const put = await call("PUT", path, {
      body: "12345",
      headers: { ...PUT_HEADERS, "x-read-only": "true" },
    });
    const { etag, lastModified } = (await put.json()) as Record<string, string>;
    const list = async (query: string) => (await call("GET", `/sessions/${session}/objects${query}`)).json();
    const name = `${session}/${file}`;
    const contentType = "text/csv; charset=utf-8";
    expect(await list("")).toEqual([name]);
    expect(await list("?detail=simple")).toEqual([name]);
    expect(await list("?detail=summary")).toEqual([{ name, size: 5, lastModified, etag }]);
    expect(await list("?detail=full")).toEqual([
      {
        name,
        size: 5,
        lastModified,
        etag,
        id: file,
        storage_session_id: session,
        resource_id: "u1",
        contentType,
        metadata: { "content-type": contentType, "original-filename": "däta/1.csv" },
      },
    ]);
    expect(await list("?detail=normalized")).toEqual([
      {
        id: file,
        name: "däta/1.csv",
        storage_session_id: session,
        size: 5,
        contentType,
        lastModified,
        read_only: true,
      },
    ]);
    expect(await list("?detail=Simple")).toMatchObject({ error: "invalid_request" });
  });

  test("of an unknown or emptied session is 404", async () => {
    expect(await errorOf(await call("GET", `/sessions/${newId()}/objects`))).toEqual([404, "file_not_found"]);
    const path = await putObject("x");
    await call("DELETE", path);
    expect(await errorOf(await call("GET", path.slice(0, -22)))).toEqual([404, "file_not_found"]);
  });
});

describe("pending objects", () => {
  const stage = (session: string, file: string, body: string) =>
    call("PUT", `/sessions/${session}/pending/${file}`, { body, headers: { ...PUT_HEADERS } });
  const commit = (session: string, body: unknown) =>
    call("POST", `/sessions/${session}/commit`, {
      body: JSON.stringify(body),
      headers: { ...TOKEN, "content-type": "application/json" },
    });

  test("become the objects of their session by one commit", async () => {
    const [session, one, two] = [newId(), newId(), newId()];
    expect(await (await stage(session, one, "one")).json()).toMatchObject({ size: 3 });
    await stage(session, two, "two");
    expect((await call("GET", objectPath(session, one))).status).toBe(404);
    expect((await call("GET", `/sessions/${session}/objects`)).status).toBe(404);
    const answer = await commit(session, { namespace: "acme:agent:a", read_only: true, files: [two, one] });
    const { files } = (await answer.json()) as { files: { id: string }[] };
    expect(files.map(({ id }) => id)).toEqual([two, one]);
    const got = await call("GET", objectPath(session, one), {
      headers: { ...TOKEN, "x-svc-namespace": "acme:agent:a" },
    });
    expect([got.headers.get("x-read-only"), await got.text()]).toEqual(["true", "one"]);
    expect(await redis.get(objectRecordKey(session, two))).toContain('"namespace":"acme:agent:a"');
  });

  test.each([
    [{ namespace: "acme", read_only: false, files: [newId()] }],
    [{ namespace: OWN, read_only: false, files: [] }],
    [{ namespace: OWN, read_only: false, files: ["x"] }],
    [{ namespace: OWN, read_only: false, files: ["a".repeat(21), "a".repeat(21)] }],
    [{ namespace: OWN, files: [newId()] }],
    [{}],
  ])("are not committed by %j", async (body) => {
    const session = newId();
    await stage(session, newId(), "x");
    expect(await errorOf(await commit(session, body))).toEqual([400, "invalid_request"]);
    expect((await call("DELETE", `/sessions/${session}/pending`)).status).toBe(200);
  });

  test("that were discarded cannot be committed", async () => {
    const [session, file] = [newId(), newId()];
    await stage(session, file, "x");
    expect((await call("DELETE", `/sessions/${session}/pending`)).status).toBe(200);
    const answer = await commit(session, { namespace: OWN, read_only: false, files: [file] });
    expect(await errorOf(answer)).toEqual([404, "file_not_found"]);
  });
});
