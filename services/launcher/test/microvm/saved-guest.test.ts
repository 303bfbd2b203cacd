/** Guests that go on from a saved one: each has the time, and random numbers of its own. */
import { readFileSync } from "node:fs";
import { loadConfig } from "@svc/service-kit/config/load";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { ACCELERATOR, buildGuest, IMAGE, UID_BASE } from "@svc/test-kit/system/guests";
import { askRound } from "@svc/worker/runner/round";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GuestFactory } from "../../src/guests/factory.ts";
import type { Guest } from "../../src/guests/guest.ts";

const RUN_MS = 120_000;
/** Of a clock that is read in a program, and of one that is read when its answer has come. */
const APART_S = 60;
const config = loadConfig("launcher", {
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
  SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
  SANDBOX_JOB_UID_BASE: `${UID_BASE}`,
  SANDBOX_JOB_GID_BASE: `${UID_BASE}`,
  SANDBOX_RUN_TIMEOUT: `${RUN_MS}`,
  SANDBOX_WARM_START: "off",
  LAUNCHER_RAM_MIB: "1024",
  LAUNCHER_VCPUS: "1",
});

let factory: GuestFactory;
const warnings: string[] = [];
beforeAll(async () => {
  buildGuest();
  const log = pino({ level: "warn" }, { write: (line: string) => void warnings.push(line) });
  const chosen = { accelerator: ACCELERATOR };
  factory = new GuestFactory({ config, image: IMAGE, languages: ["bash"], chosen, log, tls: undefined });
  await factory.prepare();
});
afterAll(() => factory.close());

/** What a Bash program prints in a guest, which ends afterwards. */
async function run(guest: Guest, content: string): Promise<string> {
  try {
    await guest.ready();
    await guest.update();
    const files = [{ name: "main.sh", content }];
    const request = { language: "bash", version: "*", files, session_id: "s", egress_grant: "g" };
    const answer = await askRound(guest.runs, {
      path: "/api/v2/execute",
      body: JSON.stringify(request),
      requestId: "saved",
      signal: AbortSignal.timeout(RUN_MS),
      bounds: { maxBytes: 1024 * 1024, maxText: 1024 * 1024 },
    });
    if ("paused" in answer) throw new Error("a program without tools is paused");
    expect(answer.stderr).toBe("");
    return answer.stdout;
  } finally {
    await guest.end();
  }
}

test("it is saved, and others go on from it", async () => {
  expect(warnings).toEqual([]);
  const seen: string[][] = [];
  for (let at = 0; at < 2; at++) {
    const guest = factory.boot();
    expect(readFileSync(`/proc/${guest.pid}/cmdline`, "utf8")).toContain("\0-incoming\0");
    const told = await run(
      guest,
      "date +%s; od -An -tx1 -N16 /dev/urandom | tr -d ' '; echo $RANDOM$RANDOM$RANDOM",
    );
    const [time = "", ...numbers] = told.trim().split("\n");
    expect(Math.abs(Number(time) - Date.now() / 1000)).toBeLessThan(APART_S);
    expect(numbers).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^\d+$/)]);
    seen.push(numbers);
  }
  for (const at of [0, 1]) expect(seen[0]?.[at]).not.toBe(seen[1]?.[at]);
});
