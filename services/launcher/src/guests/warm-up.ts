/**
 * Warms up a guest before it is saved, so that no guest that resumes from it has to do this work. Interpreters start and wait for programs. A few
 * runs make Node compile its code, and load pages that were never read before. The programs are the launcher's own: no caller sent them, and
 * nobody keeps their outputs (discardingGateway).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { askRound } from "@svc/worker/runner/round";
import type { Guest } from "./guest.ts";

const HELLOS: Readonly<Record<string, { name: string; content: string }>> = {
  bash: { name: "main.sh", content: "echo 1 | tee output" },
  python: { name: "main.py", content: "open('output', 'w').write('1')\nprint(1)" },
  javascript: {
    name: "main.js",
    content: "require('node:fs').writeFileSync('output', '1'); console.log(1)",
  },
};
/** Stands in for the session, grant and request id of a caller's run. */
const OWN = "warm-up";
const ROUNDS = 8;
/** No further round begins after this time: an emulated processor takes seconds for each. */
const ENOUGH_MS = 15_000;
const RUN_MS = 120_000;
const ANSWER_BOUNDS = { maxBytes: 1024 * 1024, maxText: 1024 * 1024 };
/**
 * Longest wait for interpreters: those that load large libraries take a minute or more on a slow emulated processor. Each guest would have to
 * start the missing ones itself beside its run, which is worse.
 */
const INTERPRETERS_MS = 300_000;
const POLL_MS = 250;
const WARM = /^svc_sandbox_warm_jails\{zygote="([^"]*)",number="(waiting|wanted)"\} (\d+)$/gm;

/** `languages`: those of the image. Rejects when the guest's runner does not answer. */
export async function warmUp(guest: Guest, languages: readonly string[]): Promise<void> {
  const end = performance.now() + INTERPRETERS_MS;
  await interpretersWait(guest, end);
  const began = performance.now();
  for (let round = 0; round < ROUNDS && performance.now() - began < ENOUGH_MS; round++) {
    for (const language of languages) await hello(guest, language);
  }
  await interpretersWait(guest, end);
}

/** Runs one program and ignores its outcome: an operator's limits may be too short for its first run on a slow machine. */
async function hello(guest: Guest, language: string): Promise<void> {
  const file = HELLOS[language];
  if (file === undefined) return;
  await askRound(guest.runs, {
    path: "/api/v2/execute",
    body: JSON.stringify({ language, version: "*", files: [file], session_id: OWN, egress_grant: OWN }),
    requestId: OWN,
    signal: AbortSignal.timeout(RUN_MS),
    bounds: ANSWER_BOUNDS,
  });
}

/** Waits until as many interpreters wait as the runner wants, or until `end`. */
async function interpretersWait(guest: Guest, end: number): Promise<void> {
  for (; performance.now() < end; await sleep(POLL_MS)) {
    const call = { method: "GET", path: "/metrics", requestId: OWN } as const;
    if (areWarm(await guest.runs.whole(call, ({ body }) => body.text()))) return;
  }
}

/** Whether a runner's metrics show as many waiting interpreters as it wants. Pure. */
export function areWarm(metrics: string): boolean {
  const counts = [...metrics.matchAll(WARM)];
  const of = (which: string) =>
    new Map(counts.flatMap(([, name, number, count]) => (number === which ? [[name, Number(count)]] : [])));
  const waiting = of("waiting");
  return [...of("wanted")].every(([name, wanted]) => (waiting.get(name) ?? 0) >= wanted);
}
