/**
 * What a session adds to a run: the same program in short turns on two copies, which differ only in SVC_PERSIST_SESSIONS.
 * The copies are started only for this, so that everything else is measured without sessions.
 */
import { startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { LoadClient } from "../load-client.ts";
import { timed } from "../measure.ts";
import { type Mode, settingsOf } from "../settings.ts";
import type { Summary } from "../statistics.ts";
import { BLOCKS_PER_GROUP, byThemselves, type Case, firstRuns } from "../turns.ts";
import { checkKept, checkWithout, SESSION_CASES, type SessionAnswer, type SessionCase } from "./cases.ts";

export interface SessionRow extends Pick<SessionCase, "state" | "changed"> {
  /** Bytes of the state as it is stored. */
  stored: number;
  /** Milliseconds of the request with a session, and on the copy without sessions. */
  ms: Summary;
  withoutMs: Summary;
}

/** Runs of a case whose share is 1: before anything is measured, as long as they take no longer, and before each block. */
const WARM_UP = { first: 300, mostFirstMs: 1000, block: 20 };
/** An archive compresses random bytes by less than this. */
const LEAST_STORED = 0.95;

interface Clients {
  /** Of the copy that keeps sessions. */
  keeping: LoadClient;
  without: LoadClient;
}

export function measureSessions(mode: Mode, n: number, note: (line: string) => void): Promise<SessionRow[]> {
  note("starting two copies");
  return onCopy(mode, "false", (without) =>
    onCopy(mode, "true", (keeping) => measurePairs({ keeping, without }, n, note)),
  );
}

async function onCopy<T>(
  mode: Mode,
  SVC_PERSIST_SESSIONS: "true" | "false",
  work: (client: LoadClient) => Promise<T>,
): Promise<T> {
  const copy = await startPrivateCopy({ env: { ...settingsOf(mode), SVC_PERSIST_SESSIONS } });
  const client = new LoadClient(copy.url);
  try {
    return await work(client);
  } finally {
    client.close();
    await copy.stop();
  }
}

async function measurePairs(
  clients: Clients,
  n: number,
  note: (line: string) => void,
): Promise<SessionRow[]> {
  const pairs = SESSION_CASES.map((sessionCase) => pairOf(sessionCase, clients, n));
  for (const { prepare } of pairs) await prepare();
  const cases = pairs.flatMap((pair) => pair.cases);
  await firstRuns(cases, WARM_UP.mostFirstMs, (name) => note(`first runs, ${name}`));
  const groups = pairs.map((pair) => ({ cases: pair.cases, alternates: false }));
  const summaries = await byThemselves(groups, (done) =>
    note(`block ${done} of ${BLOCKS_PER_GROUP * groups.length}`),
  );
  const stored = await storedBytes(clients.keeping);
  return pairs.map(({ sessionCase, hint, cases: [kept, without] }) => ({
    state: sessionCase.state,
    changed: sessionCase.changed,
    stored: atLeast(sessionCase, stored.get(hint) ?? 0),
    ms: summaries.get(kept.name) as Summary,
    withoutMs: summaries.get(without.name) as Summary,
  }));
}

type FirstCase = Case & { firstRuns: number };

interface Pair {
  sessionCase: SessionCase;
  hint: string;
  /** Leaves the state with which the session begins. */
  prepare: () => Promise<void>;
  cases: readonly [keeping: FirstCase, without: FirstCase];
}

function pairOf(sessionCase: SessionCase, { keeping, without }: Clients, n: number): Pair {
  const { state, changed, lang, first, next, share } = sessionCase;
  const hint = `bench-${SESSION_CASES.indexOf(sessionCase)}`;
  const exec = (client: LoadClient, code: string) =>
    client.json("/exec", { lang, code, runtime_session_hint: hint }) as Promise<SessionAnswer>;
  const caseOf = (where: string, work: () => Promise<void>): FirstCase => ({
    name: `${state}, ${changed ? "changed" : "unchanged"}, ${where}`,
    n: Math.ceil(n * share),
    firstRuns: Math.ceil(WARM_UP.first * share),
    warmUp: Math.ceil(WARM_UP.block * share),
    sample: () => timed(work),
  });
  return {
    sessionCase,
    hint,
    prepare: async () => {
      if (first !== undefined) checkKept(await exec(keeping, first), false);
    },
    cases: [
      caseOf("with a session", async () => checkKept(await exec(keeping, next), first !== undefined)),
      caseOf("without", async () => checkWithout(await exec(without, next))),
    ],
  };
}

/** Bytes of each session's state as it is stored, by its hint. */
async function storedBytes(client: LoadClient): Promise<Map<string, number>> {
  const { sessions } = (await client.get("/sessions")) as { sessions: { hint?: string; size: number }[] };
  return new Map(sessions.map(({ hint = "", size }) => [hint, size]));
}

function atLeast({ state, bytes }: SessionCase, stored: number): number {
  if (stored >= bytes * LEAST_STORED) return stored;
  throw new Error(`${state}: only ${stored} bytes were stored`);
}
