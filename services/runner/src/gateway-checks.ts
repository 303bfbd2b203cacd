/**
 * The runner's readiness checks of the gateway: whether it can be reached, whatever it lacks itself, and whether both have the same time. The
 * gateway compares its clock with Redis's: if it reports its own clock as right, a difference means that this one is wrong.
 */
import { askPeer, type Check, clockReason, type InnerClient, peerReason, shared } from "@svc/service-kit";
import { z } from "zod";

const tellsTime = z.object({
  time: z.iso.datetime(),
  checks: z.object({ redis: z.literal(true), clock: z.literal(true) }),
});

export function gatewayChecks(client: InnerClient): { gateway: Check; clock: Check } {
  const ask = shared(async () => {
    const beforeMs = Date.now();
    const answer = await askPeer(client, "/ready");
    return { answer, beforeMs, afterMs: Date.now() };
  });
  return {
    gateway: async () => {
      const { answer } = await ask();
      return answer === undefined ? peerReason("the gateway", answer) : undefined;
    },
    clock: async () => {
      const { answer, ...times } = await ask();
      const told = tellsTime.safeParse(answer?.body);
      if (!told.success) return undefined;
      return clockReason({ ...times, toldMs: Date.parse(told.data.time) }, "the gateway's");
    },
  };
}
