/** The variables that bring a component to a bucket of the test cluster. */
import type { S3ObjectStoreOptions } from "@svc/object-store/s3/driver";
import { ACCESS_KEY, SECRET_KEY } from "./cluster.ts";

export function environmentFor({ endpoint, bucket }: S3ObjectStoreOptions): Record<string, string> {
  return {
    STORAGE_DRIVER: "s3",
    S3_ENDPOINT: endpoint ?? "",
    S3_BUCKET: bucket,
    S3_ACCESS_KEY: ACCESS_KEY,
    S3_SECRET_KEY: SECRET_KEY,
  };
}
