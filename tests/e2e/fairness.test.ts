/** One slot and two principals: the only run of one starts before all but the first of the many that the other one has sent before. */
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { scrapeOf, sumOf } from "@svc/test-kit/system/scrape";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const MANY = 30;
/** Long enough for a program to appear, and for all runs to wait, on a busy machine. */
const APPEAR_MS = slow(60_000);
const WAITING = { queue: "python-queue", state: "waiting" };
const signer = newSigner();
let system: System;
let api: Api;

beforeAll(async () => {
  const env = {
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    SVC_MAX_CONCURRENT_EXECUTIONS: String(MANY + 1),
    MAX_REQUESTS: "1000",
    PYTHON_CONCURRENCY: "1",
    JOB_QUEUE_WAIT_MS: `${slow(120_000)}`,
  };
  system = await startSystem({ env });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const waiting = async () => sumOf(await scrapeOf(system.instance, "worker"), "svc_queue_jobs", WAITING);
const headersOf = (sub: string) => ({ authorization: `Bearer ${signer.mint({ claims: { sub } })}` });

/** Resolves with the time at which the program ran, by a clock that all programs share. */
const startOf = async (sub: string) => {
  const code = "import time\nprint(time.time_ns())";
  const { stdout } = await api.exec({ lang: "py", code }, { headers: headersOf(sub) });
  return BigInt(stdout.trim());
};

test("a principal's many runs wait behind the first run of another one that came after them", async () => {
  const marker = newMarker();
  const holder = new AbortController();
  const held = api.exec(
    { lang: "py", code: "import time\ntime.sleep(300)", args: [marker], run_timeout: 300_000 },
    { headers: headersOf("many"), signal: holder.signal },
  );
  held.catch(() => undefined);
  await until(() => processesWith(marker).length > 0, APPEAR_MS);
  const many = Array.from({ length: MANY }, () => startOf("many"));
  await expect.poll(waiting, { timeout: APPEAR_MS }).toBe(MANY);
  const other = startOf("other");
  await expect.poll(waiting, { timeout: APPEAR_MS }).toBe(MANY + 1);
  holder.abort();
  await expect(held).rejects.toThrow();
  const [first, ...rest] = [await other, ...(await Promise.all(many))];
  expect(rest.filter((one) => one < (first as bigint))).toEqual([]);
});
