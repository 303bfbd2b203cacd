/** A file server of its own for each test file, and what tests say to it. */
import { newId } from "@svc/contracts";
import {
  INTERNAL_TOKEN,
  type PrivateFileServer,
  startFileServer,
} from "@svc/test-kit/components/file-server";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect } from "vitest";

export const OWN = "acme:user:u1";
export const TOKEN = { "x-svc-internal-token": INTERNAL_TOKEN };
export const PUT_HEADERS = {
  ...TOKEN,
  "content-type": "text/csv; charset=utf-8",
  "x-original-filename": "d%C3%A4ta%2F1.csv",
  "x-svc-namespace": OWN,
};

export let redis: Redis;
export let server: PrivateFileServer;
let redisServer: PrivateRedis;

beforeAll(async () => {
  redisServer = await startRedis();
  redis = new Redis(redisServer.socket);
  server = await startFileServer(redisServer.url, {
    MAX_FILE_SIZE: "1mb",
    SVC_SESSION_STATE_MAX_BYTES: "2mb",
    EGRESS_GATEWAY_MAX_FILE_BYTES: "1mb",
  });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await redisServer.stop();
});

export const call = (method: string, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(server.url + path, { method, headers: TOKEN, ...init });
export const objectPath = (session = newId(), file = newId()) => `/sessions/${session}/objects/${file}`;

export async function putObject(
  body: Uint8Array<ArrayBuffer> | string,
  headers: Record<string, string> = {},
): Promise<string> {
  const path = objectPath();
  const answer = await call("PUT", path, { body, headers: { ...PUT_HEADERS, ...headers } });
  expect(answer.status).toBe(200);
  return path;
}

export async function errorOf(answer: Response): Promise<[number, string]> {
  const body = (await answer.json()) as { error: string; request_id: string };
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  return [answer.status, body.error];
}
