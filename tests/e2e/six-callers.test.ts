/** Five callers have programs paused and running while a sixth attacks the runner that all of them share: they do not notice. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse, ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KID, newSigner } from "../../services/api/test/support/signer.ts";
import { componentPids } from "../escape/support/component-pids.ts";
import { type Answer, Api } from "./support/api.ts";
import { OPEN_LIMITS } from "./support/open-limits.ts";
import {
  declare,
  driveOn,
  type Input,
  type Options,
  startPaused,
  tryResume,
  tryStart,
} from "./support/programmatic.ts";
import { type SecondApi, startSecondApi } from "./support/second-api.ts";
import { type System, startSystem } from "./support/system.ts";

const CALLERS = ["ann", "ben", "cid", "dot", "eve"];
const MAX_PAUSED = 12;
const signer = newSigner();
let system: System;
let second: SecondApi;
let api: Api;
beforeAll(async () => {
  const env = { ...OPEN_LIMITS, PTC_RESUME_MAX_REQUESTS: "100000", SANDBOX_MAX_PAUSED: String(MAX_PAUSED) };
  system = await startSystem({ env });
  second = await startSecondApi(system, {
    ...env,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
  api = new Api(second.url);
});
afterAll(async () => {
  expect(await second?.stop()).toBe(0);
  expect(await system?.stop()).toEqual([]);
});

const as = (sub: string): Options => ({
  headers: { authorization: `Bearer ${signer.mint({ claims: { sub } })}` },
});
const tools = { add: ({ a, b }: Input) => a + b, get: () => "got" };
const declared = declare(Object.keys(tools));

/** What it printed before its pause, it has not printed once more: it was not run again from the top. */
const ONCE = `mark = os.urandom(16).hex()
print(mark)
print(add(a=1, b=2), mark)`;

/** Each is deep or large enough to end what recurses over it, spreads it, or parses it without a bound. */
const REFUSED = `def nested(depth):
    value = 0
    for _ in range(depth): value = [value]
    return value
sys.setrecursionlimit(200_000)
for value in nested(3_000), nested(10_000), [0] * 240_000:
    try: get(value=value)
    except ToolExecutionError as error: print(error)`;
/** A second attempt, after the given moment, begins with a call that its first one did not make. */
const LARGE = `import time
if time.time() > float(sys.argv[1]): get(value=[0] * 65_000)
print(await asyncio.gather(get(n=1), get(value=[0] * 65_000)))`;

const LATER_MS = 15_000;

test("five callers keep their runs and their pauses whatever a sixth calls, pauses and resumes", async () => {
  const pids = componentPids(system, second.pid);
  const paused = await Promise.all(
    CALLERS.map((caller) => startPaused(api, { code: ONCE, tools: declared }, as(caller))),
  );
  const attack = attackAs("mallory");
  let isOver = false;
  const over = attack.finally(() => {
    isOver = true;
  });
  const runs: Answer[] = [];
  const bystander = async (caller: string) => {
    while (!isOver) runs.push(await api.post("/exec", { lang: "py", code: "print(6 * 7)" }, as(caller)));
  };
  await Promise.all([over, ...CALLERS.map(bystander)]);

  expect(runs.length).toBeGreaterThanOrEqual(CALLERS.length);
  for (const run of runs) expect(run.ok<ExecResponse>()).toMatchObject({ stdout: "42\n", code: 0 });
  for (const [at, pause] of paused.entries()) {
    const mark = pause.partial_stdout.trim();
    const { answer } = await driveOn(api, pause, tools, as(CALLERS[at] as string));
    expect(answer).toMatchObject({ status: "completed", stdout: `${mark}\n3 ${mark}\n` });
  }
  expect(componentPids(system, second.pid)).toEqual(pids);
});

async function attackAs(caller: string): Promise<void> {
  const options = as(caller);
  const start = (more: object) => tryStart(api, { tools: declared, ...more }, options);
  const refused = (await start({ code: REFUSED })).ok<{ status: string; stdout: string }>();
  expect(refused.status).toBe("completed");
  expect(refused.stdout.match(/flatten them/g)).toHaveLength(2);
  expect(refused.stdout).toContain("make several calls");

  // Far more than fit: most of its own are evicted, and run again when they go on.
  const later = Date.now() + LATER_MS;
  const args = [String(later / 1000)];
  const starts = Array.from({ length: 3 * MAX_PAUSED }, () => start({ code: LARGE, args }));
  const own: ToolCallRequired[] = [];
  for (const answer of await Promise.all(starts)) {
    if (answer.status === 200) own.push(answer.ok<ToolCallRequired>());
  }
  expect(own.length).toBeGreaterThan(MAX_PAUSED / 2);
  await sleep(Math.max(0, later - Date.now()));
  for (const { continuation_token, tool_calls } of own) {
    if (tool_calls === undefined) continue;
    const results = tool_calls.map(({ id }) => ({ call_id: id, result: "got" }));
    const answer = await tryResume(api, continuation_token, results, options);
    expect([200, 503]).toContain(answer.status);
    expect(answer.text).not.toContain("infrastructure");
  }
}
