import { expect, test } from "vitest";
import {
  accountOf,
  errorBody,
  type Quota,
  quotaExceeded,
  quotaOf,
  ServiceError,
  snapshotNamespaceOf,
  storedKindOf,
} from "../../src/index.ts";

const BYTES: Quota = { kind: "files", resource: "bytes", used: 999, limit: 1024, asked: 1 };
const OBJECTS: Quota = { kind: "files", resource: "objects", used: 4, limit: 5, asked: 2 };

test.each([
  [BYTES, 413, "There is no room for 1 more byte: 999 of 1 KiB are in use."],
  [{ ...BYTES, asked: 2000 }, 413, "There is no room for 2,000 more bytes: 999 of 1 KiB are in use."],
  [OBJECTS, 429, "There is no room for 2 more files: 4 of 5 files are stored."],
])("%j is told with its numbers", (quota, status, message) => {
  const error = quotaExceeded(quota);
  expect(errorBody(error, "r")).toEqual({ error: "quota_exceeded", message, request_id: "r", quota });
  expect(error.status).toBe(status);
  expect(error.headers).toEqual(status === 429 ? { "retry-after": "600" } : undefined);
  expect(quotaOf(error)).toEqual(quota);
});

test("an error without the numbers of a quota speaks of none", () => {
  expect(quotaOf(new ServiceError("file_too_large", undefined, { extra: { quota: BYTES } }))).toBeUndefined();
  expect(
    quotaOf(new ServiceError("quota_exceeded", undefined, { extra: { quota: { used: 1 } } })),
  ).toBeUndefined();
  expect(quotaOf(new Error("quota_exceeded"))).toBeUndefined();
});

test("an object counts for its account, else for its namespace", () => {
  expect(accountOf({ namespace: "t:agent:a", account: "t:user:u" })).toBe("t:user:u");
  expect(accountOf({ namespace: "t:agent:a" })).toBe("t:agent:a");
  expect(storedKindOf(snapshotNamespaceOf("t:user:u"))).toBe("session_states");
  expect(storedKindOf("t:user:session-state")).toBe("files");
});
