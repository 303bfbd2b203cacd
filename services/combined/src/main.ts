/**
 * SVC_TOPOLOGY=combined: five components in one process, as `./svc up` starts them. Each keeps its configuration, port, log and metrics. They
 * speak HTTP as separate processes do, over connections in memory (packages/service-kit/src/http/same-process.ts). The process holds the secrets
 * of all five, but each component gets only its own. They stop in the order of the list, so a component outlives those that need it.
 *
 * Arguments: COMPONENT=DESCRIPTOR, where a component's log lines go. Without one they go to standard output.
 */
import { startApi } from "@svc/api/start";
import { startGateway } from "@svc/egress-gateway/start";
import { startFileServer } from "@svc/file-server/start";
import { runComponents } from "@svc/service-kit";
import { startToolCallServer } from "@svc/tool-call-server/start";
import { startWorker } from "@svc/worker/start";

const descriptors = new Map(process.argv.slice(2).map((word) => word.split("=") as [string, string]));

const parts = [
  { name: "api", start: startApi },
  { name: "worker", start: startWorker },
  { name: "egress-gateway", start: startGateway },
  { name: "tool-call-server", start: startToolCallServer },
  { name: "file-server", start: startFileServer },
] as const;

await runComponents(
  parts.map((part) => ({ ...part, logDescriptor: Number(descriptors.get(part.name) ?? 1) })),
);
