/** The metrics of tool calls. Exchanges are counted in the store at each scrape: every server tells the same number. */
import { Counter, Gauge, type Registry } from "@svc/service-kit";

export interface ToolCallMetrics {
  calls: Counter;
  timeouts: Counter;
}

export function toolCallMetrics(registry: Registry, countExchanges: () => Promise<number>): ToolCallMetrics {
  const registers = [registry];
  new Gauge({
    name: "svc_tool_call_active_sessions",
    help: "Sessions of programmatic executions, over all servers.",
    registers,
    async collect() {
      this.set(await countExchanges().catch(() => Number.NaN));
    },
  });
  return {
    calls: new Counter({ name: "svc_tool_calls_total", help: "Tool calls, repeats not counted.", registers }),
    timeouts: new Counter({
      name: "svc_tool_call_timeouts_total",
      help: "Tool calls that got no result in time.",
      registers,
    }),
  };
}
