/** A jail that cannot be made, as callers of the runner see it: a safe refusal, no run, and the next one works. */
import { type ExecuteResponse, newId } from "@svc/contracts";
import type { Answer, Call } from "@svc/test-kit/components/gateway";
import { buildFaulty, type FaultPlan, Faults } from "@svc/test-kit/jail/faults";
import { until } from "@svc/test-kit/jail/host";
import { IMAGE } from "@svc/test-kit/jail/jaild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestOf, startSystemOfRunner } from "../support/runner.ts";

/** A request that meets no jail is given up after about this time. */
const ALLOWANCES = {
  SANDBOX_COMPILE_TIMEOUT: "1000",
  SANDBOX_RUN_TIMEOUT: "1000",
  JOB_PRIME_ALLOWANCE_MS: "2000",
  JOB_POSTPROCESS_ALLOWANCE_MS: "4000",
};
const NONE: FaultPlan = { role: "keeper", tickets: 0 };

let faults: Faults;
let system: Awaited<ReturnType<typeof startSystemOfRunner>>;
let call: (call: Call) => Promise<Answer>;

beforeAll(async () => {
  buildFaulty();
  faults = Faults.plan(NONE);
  system = await startSystemOfRunner({ slots: 1, ...faults.options });
  call = await system.startRunner({
    SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
    // A pre-started interpreter is a program, too.
    SANDBOX_WARM_START: "off",
    ...ALLOWANCES,
  });
}, 120_000);
afterAll(async () => {
  await system?.stop();
  faults?.remove();
});

async function execute(code: string): Promise<Answer> {
  const grant = await system.gateway.register([]);
  const body = { ...requestOf(grant, code), egress_grant: grant.egressGrantToken };
  return call({
    method: "POST",
    path: "/execute",
    headers: { "content-type": "application/json", "x-request-id": newId() },
    body: JSON.stringify(body),
  });
}

/** The jail that is ready now was made before the plan changed: it is used up. */
async function plan(next: FaultPlan): Promise<void> {
  faults.write(next);
  // Later tickets have the fault, whichever jail the next program gets.
  const before = faults.taken;
  await execute("true");
  await until(() => faults.taken > before, "another jail is made", 20_000);
}

async function expectRefused(status: number, code: string): Promise<void> {
  const before = faults.taken;
  const answer = await execute("echo executed > trace.txt; echo executed");
  const text = answer.bytes.toString();
  expect(answer.status, text).toBe(status);
  expect(Object.keys(answer.json()).sort()).toEqual(["error", "message", "request_id"]);
  expect(answer.json()).toMatchObject({ error: code });
  for (const secret of ["executed", IMAGE, system.jaild.socket, "/proc", "/tmp", "EPERM", "errno", "slot-"])
    expect(text).not.toContain(secret);
  for (let number = before - 1; number < faults.taken; number++)
    expect(faults.ticket(number).executed, `ticket ${number}`).toBe(false);
}

async function expectWorking(): Promise<void> {
  const answer = await execute("echo works");
  expect(answer.status, answer.bytes.toString()).toBe(200);
  expect((answer.json() as unknown as ExecuteResponse).stdout).toBe("works\n");
}

describe("a jail that cannot be made", () => {
  it.each<[string, FaultPlan]>([
    ["the streams cannot be arranged", { role: "program", only: "dup2", first: 2, error: "EBUSY" }],
    ["the job cannot be read", { role: "program", only: "mmap64", error: "ENOMEM" }],
    ["the limits of the run may not be set", { role: "program", only: "setrlimit64", error: "EPERM" }],
    ["the control groups may not be written", { role: "keeper", only: "pwrite64", error: "EACCES" }],
    ["arguments cannot be stored", { role: "keeper", only: "writev", error: "ENOSPC" }],
    ["there are no random numbers", { role: "keeper", only: "getrandom", error: "ENOSYS" }],
  ])("is a refusal that callers may repeat, because %s", async (_why, fault) => {
    await expectWorking();
    await plan(fault);
    const isForbidden = fault.error === "EPERM" || fault.error === "EACCES";
    await expectRefused(503, isForbidden ? "permission_denied" : "sandbox_setup_failed");
    await until(() => faults.ticket(faults.taken - 2).fired, "the call has failed");
    await recover();
    await expectWorking();
  });

  it.each<[string, FaultPlan]>([
    ["the user namespace", { role: "init", only: "unshare", first: 2 }],
    ["the groups", { role: "init", only: "setgroups" }],
  ])(
    "before anybody connects keeps callers waiting, not longer than their time: %s",
    async (_what, fault) => {
      await plan(fault);
      await expectRefused(504, "deadline_exceeded");
      await recover();
      await expectWorking();
    },
  );
});

/** A jail that was made with a fault may still be the next one. */
async function recover(): Promise<void> {
  faults.write(NONE);
  await execute("true");
}
