/**
 * One system for all tests of a project: started before the first, in order again after the last. An API that demands
 * tokens stands before it, so that hostile programs and bystanders are different principals. What the idle system holds
 * is taken down here, once: what builds up over many tests shows too.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import type { Api } from "@svc/test-kit/system/api";
import { observe } from "@svc/test-kit/system/bystander";
import { median, memoryMiB } from "@svc/test-kit/system/consumption";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { type Holdings, STEADY_POOL, settledHoldings } from "@svc/test-kit/system/holdings";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import type { TestProject } from "vitest/node";
import { componentPids } from "./component-pids.ts";
import { ATTACKER, BYSTANDER, PrincipalApi } from "./principals.ts";

/** As by default, on an ordinary machine: what waits for its turn and what is paused lasts longer on a slow one. */
const WAITS = {
  JOB_QUEUE_WAIT_MS: `${slow(60_000)}`,
  TOOL_CALL_REQUEST_TIMEOUT: `${slow(300_000)}`,
  TOOL_CALL_SESSION_EXPIRY: `${slow(600)}`,
};

/** Fewer than tests pause there, however many microVMs the machine has room for. */
const PAUSED = IN_GUESTS ? { SANDBOX_MAX_PAUSED: "8" } : {};

/** More slots than hostile programs at once: a bystander always finds one. */
const ENV = {
  ...OPEN_PROGRAM_LIMITS,
  ...STEADY_POOL,
  ...WAITS,
  ...PAUSED,
  PYTHON_CONCURRENCY: "8",
  OTHER_CONCURRENCY: "4",
  SANDBOX_MAX_CONCURRENT_JOBS: "12",
};
const WARM_UP = [
  { lang: "py", code: "open('made', 'w').write('x')" },
  { lang: "bash", code: "echo > made" },
  { lang: "js", code: "require('fs').writeFileSync('made', 'x')" },
  { lang: "ts", code: "console.log(1 as number)" },
];
const CALM_MS = 1500;

export interface Idle {
  holdings: Holdings;
  memoryMiB: number;
  /** What a bystander's request takes. */
  usualMs: number;
}

export interface Running {
  instance: System["instance"];
  supervisorPid: number;
  /** The API without authentication, with /v1. */
  url: string;
  /** The API that demands tokens, with /v1. */
  tokenUrl: string;
  tokenApiPid: number;
  /** Private key of the token signer, as PEM. */
  signingKey: string;
  /** The root image of the jails: a rebuild meanwhile makes another one. */
  image: string;
  /** The variables that the system was started with. */
  env: Record<string, string>;
  idle: Idle;
}

declare module "vitest" {
  interface ProvidedContext {
    escapeSystem: Running;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const system = await startSystem({ env: ENV });
  try {
    const signer = newSigner();
    const signingKey = signer.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    const keys = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
    const tokenApi = await startSecondApi(system, { ...ENV, ...keys });
    const as = (identity: typeof ATTACKER) => new PrincipalApi(tokenApi.url, signingKey, identity);
    await warmUp(as(ATTACKER));
    project.provide("escapeSystem", {
      instance: system.instance,
      supervisorPid: system.supervisorPid,
      url: system.url,
      tokenUrl: tokenApi.url,
      tokenApiPid: tokenApi.pid,
      signingKey,
      image: realpathSync(join(system.instance.image, "rootfs")),
      env: ENV,
      idle: await measureIdle(system, tokenApi.pid, as(BYSTANDER)),
    });
    return async () => {
      const code = await tokenApi.stop();
      const left = await system.stop();
      if (code !== 0 || left.length > 0) throw new Error(`left behind (${code}): ${left.join("; ")}`);
    };
  } catch (error) {
    await system.stop();
    throw error;
  }
}

/** All languages at once, more than once: the pools of connections are full afterwards. */
async function warmUp(api: Api): Promise<void> {
  for (let round = 0; round < 2; round++) {
    await Promise.all([...WARM_UP, ...WARM_UP].map((program) => api.exec(program)));
  }
}

async function measureIdle(system: System, tokenApiPid: number, bystander: Api): Promise<Idle> {
  const calm = new Promise<void>((resolve) => setTimeout(resolve, CALM_MS));
  const { observed } = await observe(bystander, calm);
  if (observed.failures.length > 0) throw new Error(`the idle system fails: ${observed.failures[0]}`);
  return {
    usualMs: median(observed.latenciesMs),
    holdings: await settledHoldings(system),
    memoryMiB: memoryMiB(componentPids(system, tokenApiPid)),
  };
}
