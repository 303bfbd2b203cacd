/** Streams by the hundreds: readers that leave, and what Redis holds of streams. */
import type { Instance } from "@svc/cli/instance";
import { openStream } from "@svc/test-kit/system/streams";
import { Redis } from "ioredis";

/** Opens streams one after the other, and leaves each when its program has written something. */
export async function leaveStreams(url: string, count: number): Promise<void> {
  for (let left = 0; left < count; left++) {
    const answer = await openStream(url, "/exec", { lang: "bash", code: "echo 1; sleep 20" });
    await answer.until(({ event }) => event === "stdout");
    answer.leave();
  }
}

/** Keys and subscriptions of streams. */
export function leftOfStreams({ redisSocket }: Instance) {
  const redis = new Redis(redisSocket);
  const names = async () => [
    ...(await redis.keys("svc:events:*")),
    ...((await redis.pubsub("CHANNELS", "svc:events:*")) as string[]),
  ];
  return { names, close: () => redis.disconnect() };
}
