/** What one request of a kind costs, by component: the measured side of the capacity model. */
import type { Origin } from "../../bench/result.ts";

export interface KindAccount {
  /** The name of a scenario of the bench. */
  name: string;
  requests: number;
  /** Processor milliseconds per request, by component. */
  cpuMs: Readonly<Record<string, number>>;
  /** Per request; `byteSeconds`: bytes that stay, times the seconds that they stay. */
  redis: { commands: number; inBytes: number; outBytes: number; byteSeconds: number };
  /** Bytes per request, in both directions, between a component and its callers. */
  bytes: Readonly<Record<string, number>>;
}

export interface Accounts extends Origin {
  version: 1;
  kind: "accounts";
  kinds: readonly KindAccount[];
}
