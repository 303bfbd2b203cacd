/** A program with tools and its guest, in the form that the registry of paused programs keeps. */
import type { CountedExecution } from "@svc/runner/metrics";
import type { Guest } from "../guests/guest.ts";
import type { Lease } from "../guests/pool.ts";

export class HeldGuest {
  readonly executionId: string;
  readonly principal: string;
  readonly language: string;
  readonly counted: CountedExecution;
  /** Memory of its guest, whatever the program itself uses. */
  readonly memoryBytes: number;
  /** The current round; between rounds the last one. */
  round: number;
  pausedAtMs = 0;
  /** Called while it is paused, when its guest is gone or no longer keeps the program. */
  onUnanswerable: (() => void) | undefined;
  /** Absent until a guest is free. */
  lease: Lease<Guest> | undefined;
  readonly #killed = new AbortController();

  constructor(
    options: Pick<HeldGuest, "executionId" | "principal" | "language" | "counted" | "memoryBytes" | "round">,
  ) {
    this.executionId = options.executionId;
    this.principal = options.principal;
    this.language = options.language;
    this.counted = options.counted;
    this.memoryBytes = options.memoryBytes;
    this.round = options.round;
  }

  get killed(): AbortSignal {
    return this.#killed.signal;
  }

  uses(lease: Lease<Guest>): void {
    if (this.lease !== undefined) return;
    this.lease = lease;
    void lease.guest.ended.then(() => this.onUnanswerable?.());
  }

  kill(reason: unknown): void {
    this.#killed.abort(reason);
    this.lease?.fail("evicted");
  }
}
