/**
 * Readiness: named checks, each with a reason when it fails. Every component answers its readiness route with these checks.
 * A reason is a few plain words for an operator. Some of these routes are public, so it has no addresses, paths or library texts.
 */
import type { Lifecycle } from "../http/server.ts";

/** Returns the reason when the check fails, otherwise undefined. A check that rejects fails with a generic reason. */
export type Check = () => Promise<string | undefined> | string | undefined;
export type Checks = Readonly<Record<string, Check>>;

export interface Finding {
  ok: boolean;
  reason?: string;
  ms: number;
}

export interface Readiness<Name extends string = string> {
  ok: boolean;
  findings: Record<Name, Finding>;
}

/** The body of a readiness route: all checks, and the reasons of those that failed. */
export interface ToldReadiness {
  checks: Record<string, boolean>;
  reasons?: Record<string, string>;
}

/** A check that takes longer has failed. Longer than any check waits by itself. */
const LIMIT_MS = 7000;
const LATE = `the check did not end within ${LIMIT_MS / 1000} s`;

/** Runs all checks in parallel. Never rejects. */
export async function checkReadiness<Name extends string>(
  checks: Readonly<Record<Name, Check>>,
): Promise<Readiness<Name>> {
  const names = Object.keys(checks) as Name[];
  const found = await Promise.all(names.map((name) => findingOf(checks[name])));
  const findings = Object.fromEntries(names.map((name, at) => [name, found[at]])) as Record<Name, Finding>;
  return { ok: found.every(({ ok }) => ok), findings };
}

async function findingOf(check: Check): Promise<Finding> {
  const began = performance.now();
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve(LATE), LIMIT_MS);
  const checked = (async () => check())().catch(() => "the check failed");
  const reason = await Promise.race([checked, late.promise]);
  clearTimeout(timer);
  const ms = Math.round((performance.now() - began) * 10) / 10;
  return reason === undefined ? { ok: true, ms } : { ok: false, reason, ms };
}

export function toldOf({ findings }: Readiness): ToldReadiness {
  const all = Object.entries(findings);
  const checks = Object.fromEntries(all.map(([name, { ok }]) => [name, ok]));
  const failed = all.filter(([, { ok }]) => !ok);
  if (failed.length === 0) return { checks };
  return { checks, reasons: Object.fromEntries(failed.map(([name, { reason = "" }]) => [name, reason])) };
}

/** Concurrent calls share one answer. */
export function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}

/** Passes while the component is neither starting nor stopping. */
export function runningCheck(lifecycle: Lifecycle): Check {
  const reasons = { starting: "it is starting", stopping: "it is ending", running: undefined } as const;
  return () => reasons[lifecycle.state];
}
