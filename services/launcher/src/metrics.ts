/** Metrics of guests. */
import { counter, gauge, histogram, type Registry } from "@svc/service-kit";
import { type EndCause, GUEST_STATES, type GuestState } from "./guests/pool.ts";

export interface GuestMetrics {
  ready: (bootMs: number) => void;
  ended: (cause: EndCause) => void;
  /** Sets the function that each scrape calls to count the guests by state. */
  watch: (read: () => Record<GuestState, number>) => void;
}

export function guestMetrics(registry: Registry): GuestMetrics {
  const boots = histogram(registry, "svc_launcher_boot_seconds");
  const ends = counter(registry, "svc_launcher_guests_ended_total");
  let read: (() => Record<GuestState, number>) | undefined;
  gauge(registry, "svc_launcher_guests", (guests) => {
    const counts = read?.();
    for (const state of GUEST_STATES) guests.set({ state }, counts?.[state] ?? 0);
  });
  return {
    ready: (bootMs) => boots.observe(bootMs / 1000),
    ended: (cause) => ends.inc({ cause }),
    watch: (from) => {
      read = from;
    },
  };
}
