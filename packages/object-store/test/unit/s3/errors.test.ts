import { s3Call } from "@svc/object-store/s3/errors";
import { StoreError } from "@svc/object-store/store";
import { describe, expect, test } from "vitest";

const failing = (name: string, httpStatusCode?: number, extra: object = {}) =>
  s3Call("doing it", () =>
    Promise.reject(Object.assign(new Error("inner text"), { name, $metadata: { httpStatusCode }, ...extra })),
  ).catch((error: StoreError) => error);

describe("a failed call", () => {
  test.each([
    ["NoSuchKey", 404, "not_found"],
    ["NotFound", 404, "not_found"],
    ["NoSuchBucket", 404, "unavailable"],
    ["NoSuchUpload", 404, "unavailable"],
    ["AccessDenied", 403, "unavailable"],
    ["SlowDown", 503, "unavailable"],
    ["TimeoutError", undefined, "unavailable"],
    ["AbortError", undefined, "unavailable"],
  ])("named %s (%s) is %s", async (name, status, failure) => {
    const error = await failing(name, status);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ failure });
    expect(error.message).not.toContain("inner text");
  });

  test("keeps name, status and text for the log, and no field of the answer", async () => {
    const { cause } = await failing("SignatureDoesNotMatch", 403, { StringToSign: "s", AWSAccessKeyId: "k" });
    expect(String(cause)).toContain("SignatureDoesNotMatch: inner text (403)");
    expect(Object.keys(cause as object)).toEqual([]);
  });

  test("passes a failure of the store on as it is", async () => {
    const given = new StoreError("damaged", "x");
    await expect(s3Call("doing it", () => Promise.reject(given))).rejects.toBe(given);
  });
});
