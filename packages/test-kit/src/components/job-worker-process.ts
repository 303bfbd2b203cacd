/** A worker as a process of its own, so that a test can kill or stop it. Says that it is ready, then the id of each job. */
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "@svc/service-kit";
import { newSecret } from "../credentials/secrets.ts";
import { startWorker } from "./job-queue.ts";

const workMs = Number(process.argv[2]);
const config = loadConfig("api", {
  LOCAL_MODE: "true",
  LOG_LEVEL: "fatal",
  SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  REDIS_URL: process.env.REDIS_URL ?? "",
});
await startWorker(config, {
  concurrency: 1,
  work: async (job) => {
    process.send?.(job.job_id ?? job.execution_id);
    await sleep(workMs);
    return { ok: true, answer: { by: "process" } };
  },
});
const now = Date.now;
process.on("message", (ms) => {
  Date.now = () => now() - Number(ms);
});
process.send?.("ready");
