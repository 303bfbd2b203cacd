/** The memory of a run by the caller's plan: a second API that demands tokens, before the rest of a whole system. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { NODE } from "@svc/cli/components";
import { componentEnvironment } from "@svc/cli/environment";
import { loadSecrets } from "@svc/cli/secrets";
import type { ExecResponse } from "@svc/contracts";
import { builtBundle } from "@svc/test-kit/components/component";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const PLANS = {
  small: { run_memory_limit: "64mb" },
  huge: { run_memory_limit: "100gb" },
  default: { run_memory_limit: "128mb" },
};
const CEILING_MB = 256;
/** What is taken for less than the moment between two looks at it may stay unseen, so it is held. */
const PROGRAM = `import sys, time
held = bytearray(int(sys.argv[1]) << 20)
time.sleep(float(sys.argv[2]))
print("fits")`;

let system: System;
let tokenApi: SecondApi;
const signer = newSigner();

beforeAll(async () => {
  const env = {
    SVC_PLAN_LIMITS: JSON.stringify(PLANS),
    SANDBOX_RUN_MEMORY_LIMIT: `${CEILING_MB}mb`,
    ...OPEN_LIMITS,
  };
  system = await startSystem({ env });
  tokenApi = await startSecondApi(system, {
    ...env,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
});

afterAll(async () => {
  expect(await tokenApi.stop()).toBe(0);
  expect(await system.stop()).toEqual([]);
});

async function hold(
  megabytes: number,
  seconds: number,
  plan: string | undefined,
  at = tokenApi.url,
): Promise<ExecResponse> {
  const authorization = `Bearer ${signer.mint({ claims: { plan_id: plan } })}`;
  return new Api(at).exec(
    { lang: "py", code: PROGRAM, args: [String(megabytes), String(seconds)] },
    at === tokenApi.url ? { headers: { authorization } } : {},
  );
}

test.each([
  ["small", 64],
  ["unlisted", 128],
  [undefined, 128],
  ["huge", CEILING_MB],
] as const)("a caller with plan %j has %i MB, and not a third more", async (plan, limit) => {
  // The interpreter itself takes about 10 MB.
  expect(await hold(limit - 24, 0.2, plan)).toMatchObject({ stdout: "fits\n", code: 0, status: null });
  expect(await hold(Math.ceil(limit * 1.3), 20, plan)).toMatchObject({ code: 137, status: "ML", stdout: "" });
});

test("without authentication the default plan holds", async () => {
  expect(await hold(100, 0.2, undefined, system.url)).toMatchObject({ status: null });
  expect(await hold(170, 20, undefined, system.url)).toMatchObject({ status: "ML" });
});

test("a plan's limit that cannot be read stops a component by name", async () => {
  const { instance } = system;
  const env = componentEnvironment("worker", instance, loadSecrets(instance.dataDir), {
    SVC_PLAN_LIMITS: '{"small":{"run_memory":1}}',
  });
  const worker = spawn(NODE, [await builtBundle("worker")], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [worker.stdout, worker.stderr]) stream.on("data", (data) => (said += data));
  const [code] = await once(worker, "close");
  expect(code).not.toBe(0);
  expect(said).toContain("SVC_PLAN_LIMITS is wrong at small");
});
