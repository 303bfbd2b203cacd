/** The metrics of tool calls. Exchanges are counted in Redis at each scrape, so every server reports the same number. */
import { type Counter, counter, gauge, type Registry } from "@svc/service-kit";

export interface ToolCallMetrics {
  calls: Counter<never>;
  timeouts: Counter<never>;
}

export function toolCallMetrics(registry: Registry, countExchanges: () => Promise<number>): ToolCallMetrics {
  gauge(registry, "svc_tool_call_active_sessions", async (exchanges) =>
    exchanges.set(await countExchanges().catch(() => Number.NaN)),
  );
  return {
    calls: counter(registry, "svc_tool_calls_total"),
    timeouts: counter(registry, "svc_tool_call_timeouts_total"),
  };
}
