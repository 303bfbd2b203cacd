/**
 * Cancels programs with tools, by the label that their caller gave them or because their client left: what runs is stopped
 * by the replica that makes its round, what is paused is removed.
 */
import { createHash } from "node:crypto";
import type { Principal } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { Attempts } from "./attempts.ts";
import type { Ends } from "./ends.ts";
import type { Programs } from "./programs.ts";
import type { RunningPrograms } from "./running.ts";
import type { ToolSessions } from "./tool-sessions.ts";

/** Longer than a program that runs and pauses for as long as it ever may. */
const LABEL_SECONDS = 172_800;

export interface CancelsDeps {
  redis: Redis;
  programs: Programs;
  running: RunningPrograms;
  attempts: Attempts;
  sessions: ToolSessions;
  ends: Ends;
}

export class Cancels {
  readonly #deps: CancelsDeps;

  constructor(deps: CancelsDeps) {
    this.#deps = deps;
  }

  /** Remembers a program under its label. */
  async remember(principal: Principal, label: string, executionId: string): Promise<void> {
    const key = labelKey(principal, label);
    await storeCall(() => this.#deps.redis.multi().sadd(key, executionId).expire(key, LABEL_SECONDS).exec());
  }

  /** Forgets a program that has ended; failing that, its label lapses. */
  forget(principal: Principal, label: string, executionId: string): void {
    this.#deps.redis.srem(labelKey(principal, label), executionId).catch(() => undefined);
  }

  /** Cancels all programs of the principal with this label. How many there were. */
  async byLabel(principal: Principal, label: string, requestId: string): Promise<number> {
    const key = labelKey(principal, label);
    const ids = await storeCall(() => this.#deps.redis.smembers(key));
    const cancelled = await Promise.all(ids.map((id) => this.one(id, requestId)));
    if (ids.length > 0) await storeCall(() => this.#deps.redis.srem(key, ...ids));
    return cancelled.filter(Boolean).length;
  }

  /** Cancels one program; false when it had ended. One that has not paused yet has no state but its round. */
  async one(id: string, requestId: string): Promise<boolean> {
    const { programs, running, attempts, sessions, ends } = this.#deps;
    await running.cancel(id);
    for (;;) {
      const known = await programs.progress(id);
      if (known === undefined) return true;
      const { status, runner_url } = known.progress;
      if (status !== "paused") return false;
      const program = await programs.program(id).catch(() => undefined);
      const { taken: _t, runner_url: _r, ...rest } = known.progress;
      const to = { ...rest, status: "cancelled" as const, waiting: [] };
      if ((await programs.advance(id, { from: known, to, lifeMs: ends.lifeMs })) === undefined) continue;
      if (program !== undefined && runner_url !== undefined) attempts.discard(program, runner_url, requestId);
      sessions.end(id, known.progress.grant_id, requestId);
      await programs.forget(id);
      return true;
    }
  }
}

function labelKey({ tenantId, userId }: Principal, label: string): string {
  const owned = JSON.stringify([tenantId, userId, label]);
  return `svc:ptc:label:${createHash("sha256").update(owned).digest("base64url")}`;
}
