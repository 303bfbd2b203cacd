/** A Redis connection as BullMQ takes it. */
import type { Redis } from "@svc/service-kit";
import { createIORedisClient, type IRedisClient } from "bullmq";

export function queueConnection(redis: Redis): IRedisClient {
  return createIORedisClient(redis);
}
