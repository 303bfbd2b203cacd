/** What the driver makes of answers that no good server gives. */
import { newId } from "@svc/contracts";
import { Bucket } from "@svc/object-store/s3/bucket";
import { expect, test, vi } from "vitest";
import { failure } from "../../support/content.ts";

const connection = {
  endpoint: "http://127.0.0.1:1",
  region: "r",
  bucket: "b",
  forcePathStyle: true,
  credentials: { accessKeyId: "a", secretAccessKey: "s" },
};

test.each([{ LastModified: new Date() }, { ContentLength: 0 }])(
  "an answer with no more than %o says neither size nor time of an object",
  async (answer) => {
    const bucket = new Bucket(connection);
    vi.spyOn(bucket.client, "send").mockResolvedValue(answer as never);
    expect(await failure(bucket.head(`uses/${newId()}/${newId()}`))).toBe("unavailable");
  },
);
