import { countObjects, createBucket } from "@svc/test-kit/storage/s3/bucket";
import { inject } from "vitest";
import { S3ObjectStore } from "../../src/s3/driver.ts";
import { objectStoreConformance } from "../support/conformance.ts";

objectStoreConformance("the S3 driver", async () => {
  const { options, keys, destroy } = await createBucket(inject("s3Endpoint"));
  return {
    store: new S3ObjectStore(options),
    countStored: async () => countObjects(await keys()),
    destroy,
  };
});
