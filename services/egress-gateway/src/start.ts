/** Starts the egress gateway: its connections, its ledger, its port. */
import { Ledger, sealKeys } from "@svc/capabilities";
import { type Context, createRedis, InnerClient, type Running, tokenTo } from "@svc/service-kit";
import { Admission } from "./admission.ts";
import { Authority } from "./authority.ts";
import { gatewayMetrics } from "./metrics.ts";
import { buildGateway } from "./server.ts";
import { ToolCalls } from "./tool-calls.ts";

export async function startGateway(context: Context): Promise<Running> {
  const { config, log, registry } = context;
  const metrics = gatewayMetrics(registry);
  const redis = createRedis(config, log, { use: "commands" });
  const fileServer = new InnerClient({
    baseUrl: config.EGRESS_GATEWAY_FILE_SERVER_URL,
    internalToken: tokenTo(config, "egress-gateway", "file-server"),
    unreachable: "storage_unavailable",
    late: "upstream_timeout",
    timeoutMs: config.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS,
    tls: context.tls,
  });
  const keys = sealKeys(config.SVC_EGRESS_GRANT_SECRET, config.SVC_EGRESS_GRANT_SECRET_PREVIOUS);
  const ledger = new Ledger({
    open: () => createRedis(config, log, { use: "commands" }),
    connections: config.SVC_EGRESS_LEDGER_MUTATION_CONNECTIONS,
    graceSeconds: config.SVC_EGRESS_LEDGER_TTL_GRACE_SECONDS,
    onConflict: () => metrics.conflicts.inc(),
  });
  const authority = new Authority(keys, ledger, config.EGRESS_GRANT_TTL_SECONDS);
  const admission = new Admission(keys, ledger, config.SVC_EGRESS_LEDGER_REQUIRED);
  const toolCalls = new ToolCalls(keys, admission, config, context.tls);
  const made = { redis, fileServer, keys, ledger, authority, admission, toolCalls, metrics };
  const app = buildGateway({ ...context, ...made });
  await app.listen({ port: config.EGRESS_GATEWAY_PORT, host: config.EGRESS_GATEWAY_HOST });
  return {
    stop: async () => {
      toolCalls.stop();
      await app.close();
      await toolCalls.close();
      await fileServer.close();
      ledger.close();
      redis.disconnect();
    },
  };
}
