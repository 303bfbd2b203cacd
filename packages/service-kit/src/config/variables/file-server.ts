/** Variables that only the file server reads. */
import {
  bool,
  int,
  oneOf,
  port,
  seconds,
  secret,
  size,
  text,
  url,
  type Variable,
  withNote,
} from "../types.ts";

/** More than any store has. */
const MAX_QUOTA_BYTES = 2 ** 50;
const quotaBytes = (doc: string) => size(0, `${doc} 0: no quota.`, { max: MAX_QUOTA_BYTES });
const lifeOf = (doc: string) =>
  withNote(int(0, `${doc} In seconds.`, { max: 31_536_000 }), "`SESSION_CACHE_TTL`");

export const FILE_SERVER = {
  SESSION_CACHE_TTL: seconds(
    86_400,
    "Life of files and their records after upload and last use, where the next two variables set no other.",
  ),
  SVC_UPLOAD_TTL_SECONDS: lifeOf("Life of uploaded files after upload and last use."),
  SVC_OUTPUT_TTL_SECONDS: lifeOf("Life of files that runs left, after the run and their last use."),
  SVC_QUOTA_MAX_BYTES: quotaBytes("Bytes of all files that a principal may have stored at once."),
  SVC_QUOTA_MAX_OBJECTS: int(0, "Files that a principal may have stored at once. 0: no quota.", {
    max: 1_000_000,
  }),
  SVC_QUOTA_SESSION_STATE_MAX_BYTES: quotaBytes(
    "Bytes of all states of sessions that a principal may have stored at once.",
  ),
  FILE_SERVER_PORT: port(3000, "Port of the file server."),
  FILE_SERVER_HOST: text("127.0.0.1", "Address that the file server listens on."),
  STORAGE_DRIVER: oneOf(["s3", "fs"], "s3", "`s3` keeps objects in a bucket, `fs` in a directory."),
  STORAGE_DIR: text("./data", "Directory of the `fs` driver."),
  S3_ENDPOINT: url("", "Address of the S3 server; without it AWS in S3_REGION."),
  S3_REGION: text("us-east-1", "Region of the bucket."),
  S3_BUCKET: text("svc-files", "Bucket; it belongs to this service alone."),
  S3_ACCESS_KEY: secret("Access key; without it the AWS credentials chain: web identity, instance role."),
  S3_SECRET_KEY: secret("Secret key."),
  S3_SESSION_TOKEN: secret("Session token of temporary keys."),
  S3_FORCE_PATH_STYLE: bool(true, "The bucket's name is in the path; `false`: in the host name."),
} satisfies Record<string, Variable<unknown>>;
