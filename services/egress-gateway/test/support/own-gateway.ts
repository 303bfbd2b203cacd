/** A gateway with Redis for the tests of a file, which begins before them and ends after them. */
import { type Gateway, startGateway } from "@svc/test-kit/components/gateway";
import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";

export let made: Gateway;
export let redis: Redis;

/** To be called once, by the file. */
export function useGateway(): void {
  beforeAll(async () => {
    made = await startGateway();
    redis = new Redis(made.redis.socket).on("error", () => {});
  });
  afterAll(async () => {
    redis.disconnect();
    await made.stop();
  });
}

/** As tokens tell the time, in seconds. */
export const now = () => Math.floor(Date.now() / 1000);
