/** An API that is ended: what it accepted is finished within the grace, and answered then. */
import { startComponent } from "@svc/test-kit/components/component";
import { afterEach, expect, it } from "vitest";
import { OK, workFor } from "../support/consumer.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

let made: Replicas;
afterEach(() => made.stop());

const start = async (SHUTDOWN_GRACE_MS: string) => {
  made = await startReplicas(0);
  return startComponent("api", { ...made.settings, LOG_LEVEL: "info", SHUTDOWN_GRACE_MS });
};
const exec = (url: string) =>
  fetch(`${url}/v1/exec`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"lang":"py","code":"1"}',
  });

it("cancels a run that goes on for longer, and says that the service is shutting down", async () => {
  const api = await start("500");
  const { started, cancelled } = await made.consume({ work: (_job, stop) => workFor(60_000, stop) });
  const answered = exec(api.url);
  await expect.poll(() => started.length).toBe(1);
  const ended = api.kill("SIGTERM");
  const answer = await answered;
  expect([answer.status, answer.headers.get("retry-after"), await answer.json()]).toEqual([
    503,
    "2",
    expect.objectContaining({ error: "shutting_down" }),
  ]);
  await ended;
  await expect.poll(() => cancelled).toEqual(started);
});

it("answers a run that ends in time", async () => {
  const api = await start("60000");
  const release = Promise.withResolvers<void>();
  const { started } = await made.consume({ work: () => release.promise.then(() => OK) });
  const answered = exec(api.url);
  await expect.poll(() => started.length).toBe(1);
  const ended = api.kill("SIGTERM");
  release.resolve();
  expect((await answered).status).toBe(200);
  await ended;
});
