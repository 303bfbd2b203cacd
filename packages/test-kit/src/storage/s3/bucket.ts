/** Buckets of the test cluster: an empty one for each test, and what lies in it. */
import { randomBytes } from "node:crypto";
import { CreateBucketCommand, DeleteBucketCommand } from "@aws-sdk/client-s3";
import { Bucket } from "@svc/object-store/s3/bucket";
import type { S3ObjectStoreOptions } from "@svc/object-store/s3/driver";
import { ACCESS_KEY, SECRET_KEY } from "./cluster.ts";

export interface TestBucket {
  options: S3ObjectStoreOptions;
  bucket: Bucket;
  /** All keys, with the multipart uploads that are open. */
  keys: () => Promise<string[]>;
  destroy: () => Promise<void>;
}

export function optionsFor(endpoint: string, bucket: string): S3ObjectStoreOptions {
  return {
    endpoint,
    bucket,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: ACCESS_KEY, secretAccessKey: SECRET_KEY },
    useGranularityMs: 0,
  };
}

export async function createBucket(endpoint: string): Promise<TestBucket> {
  const options = optionsFor(endpoint, `test-${randomBytes(8).toString("hex")}`);
  const bucket = new Bucket(options);
  await bucket.client.send(new CreateBucketCommand({ Bucket: options.bucket }));
  const keys = async () => {
    const found: string[] = [];
    for await (const { key } of bucket.list("")) found.push(key);
    for await (const { key } of bucket.openUploads("")) found.push(`${key}?uploads`);
    return found;
  };
  const destroy = async () => {
    for await (const { key, uploadId } of bucket.openUploads("")) await bucket.abortUpload(key, uploadId);
    for await (const { key } of bucket.list("")) await bucket.delete(key);
    await bucket.client.send(new DeleteBucketCommand({ Bucket: options.bucket }));
    bucket.client.destroy();
  };
  return { options, bucket, keys, destroy };
}

/** How many objects the keys of a bucket are: bytes with what belongs to them count once, everything alone counts. */
export function countObjects(keys: readonly string[]): number {
  const owned = new Set<string>();
  const contents = keys.filter((key) => key.startsWith("content/"));
  for (const key of contents) {
    const [, session, file] = key.split("/");
    for (const kind of ["records", "pending", "uses"]) owned.add(`${kind}/${session}/${file}`);
    owned.add(`batches/${session}`);
  }
  return contents.length + keys.filter((key) => !key.startsWith("content/") && !owned.has(key)).length;
}
