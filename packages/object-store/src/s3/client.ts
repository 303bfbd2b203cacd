/**
 * The S3 client: credentials, addresses, time limits, retries. Each request has up to four attempts with backoff, and fails after
 * a fixed time. Certificates are always verified; NODE_EXTRA_CA_CERTS names further certificate authorities.
 */
import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import { STORING_MS } from "@svc/contracts";

export interface S3Connection {
  /** Address of the service. Default: AWS in the region. */
  endpoint?: string | undefined;
  region: string;
  bucket: string;
  /** Bucket in the path instead of the host name. */
  forcePathStyle: boolean;
  /** Default: the SDK's chain of providers: environment, web identity, shared files, instance role. */
  credentials?:
    | { accessKeyId: string; secretAccessKey: string; sessionToken?: string | undefined }
    | undefined;
}

/** For one attempt, and for all attempts together. */
export interface TimeLimits {
  tryMs: number;
  totalMs: number;
}

/** Requests without content, and records. */
export const SHORT: TimeLimits = { tryMs: 8000, totalMs: STORING_MS.record };
/** Requests that carry content. `totalMs` is for all requests of one content together. */
export const LONG: TimeLimits = { tryMs: 20_000, totalMs: STORING_MS.content };

const ATTEMPTS = 4;
const CONNECT_MS = 3000;
/** A paused reader holds its connection, so there must be more connections than readers. */
const MAX_CONNECTIONS = 2048;

export function createClient(connection: S3Connection): S3Client {
  const { endpoint, region, forcePathStyle, credentials } = connection;
  const agent = { keepAlive: true, maxSockets: MAX_CONNECTIONS };
  const config: S3ClientConfig = {
    region,
    forcePathStyle,
    maxAttempts: ATTEMPTS,
    retryMode: "standard",
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
    },
    ...(endpoint === undefined ? {} : { endpoint }),
  };
  if (credentials !== undefined) {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    config.credentials = {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
    };
  }
  return new S3Client(config);
}

/** `abortSignal`: one signal for several requests that share a time limit. */
export function within(
  { tryMs, totalMs }: TimeLimits,
  abortSignal = AbortSignal.timeout(totalMs),
): { abortSignal: AbortSignal; requestTimeout: number } {
  return { abortSignal, requestTimeout: tryMs };
}
