/** Principals share the queue: the runs of one with many wait behind the first run of another, whichever replica took them. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Job } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { afterEach, describe, expect, it } from "vitest";
import { OK } from "../../support/consumer.ts";
import { type Replicas, startReplicas } from "../../support/replicas.ts";

const MANY = 12;
let made: Replicas;
afterEach(() => made.stop());

const signer = newSigner();
const start = async (env: Record<string, string> = {}) => {
  made = await startReplicas(2, {
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    MAX_REQUESTS: "1000",
    ...env,
  });
  const started: string[] = [];
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  await made.consume({
    concurrency: 1,
    work: async ({ principal }: Job) => {
      started.push(principal.userId);
      await opened;
      return OK;
    },
  });
  return { started, open };
};
const run = (path: string, sub: string, replica: number, body: object = {}) =>
  fetch(`${made.urls[replica]}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${signer.mint({ claims: { sub } })}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ lang: "py", code: "1", ...body }),
  });
const inHand = async () => Number(await made.redis.zcard("bull:python-queue:prioritized"));

describe("a principal with many runs", () => {
  it("does not hold up another one, on any replica", async () => {
    const { started, open } = await start();
    const answers = [run("/exec", "many", 0)];
    await expect.poll(() => started).toEqual(["many"]);
    for (let at = 0; at < MANY; at++) {
      answers.push(run("/exec", "many", at % 2));
      await expect.poll(inHand).toBe(at + 1);
    }
    answers.push(run("/exec", "other", 0));
    await expect.poll(inHand).toBe(MANY + 1);
    open();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(started.slice(0, 2)).toEqual(["many", "other"]);
  });
});

describe("a process with as many executions in hand as it may have", () => {
  it("refuses further ones before their bodies are read and counted, and then takes them again", async () => {
    const { started, open } = await start({ JOB_QUEUE_LIMIT: "2" });
    const answers = [run("/exec", "one", 0), run("/exec", "two", 0)];
    await expect.poll(async () => started.length + (await inHand())).toBe(2);
    for (const path of ["/exec", "/exec/programmatic"]) {
      const refused = await run(path, "three", 0);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await refused.json()).toMatchObject({
        error: "queue_saturated",
        message: expect.stringContaining("was not started"),
      });
      expect(refused.headers.get("ratelimit-limit")).toBe("1000");
      expect(refused.headers.has("ratelimit-remaining")).toBe(false);
    }
    expect(await statusOfUnfinished("three")).toBe(503);
    expect(await made.redis.keys("svc:limit:*")).toHaveLength(2);
    answers.push(run("/exec", "three", 1));
    open();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await run("/exec", "three", 0)).status).toBe(200);
  });
});

/** Status of the answer to a request whose body never comes. */
async function statusOfUnfinished(sub: string): Promise<number | undefined> {
  const sent = request(`${made.urls[0]}/exec`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${signer.mint({ claims: { sub } })}`,
      "content-type": "application/json",
      "content-length": 1000,
    },
  });
  sent.flushHeaders();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  sent.on("error", () => undefined).destroy();
  return answer.statusCode;
}
