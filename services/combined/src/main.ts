/**
 * SVC_TOPOLOGY=combined: five components as one process, the way of `./svc up`. Each keeps its configuration, port, log and
 * metrics; they speak over loopback as separate processes do. The process holds the secrets of all five, each component
 * gets its own. They stop in this order: a component outlives those that need it.
 *
 * Arguments: COMPONENT=DESCRIPTOR, where its log lines go. Without one they go to standard output.
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
