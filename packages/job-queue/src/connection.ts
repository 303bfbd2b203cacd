/** Wraps a Redis connection for BullMQ. */
import type { Redis } from "@svc/service-kit";
import { createIORedisClient, type IRedisClient } from "bullmq";

export function queueConnection(redis: Redis): IRedisClient {
  return createIORedisClient(redis);
}
