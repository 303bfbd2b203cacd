/** docs/metrics.md, made from the table of the components' metrics and from the registry with which each component begins. */
import { createRegistry } from "@svc/service-kit";
import { METRICS, type MetricDefinition } from "@svc/service-kit/metrics/definitions";
import { table } from "./table.ts";

/** The components, in the order of the page. */
const COMPONENTS = ["api", "worker", "runner", "egress-gateway", "file-server", "tool-call-server"] as const;

const values = (listed: readonly string[] | string): string =>
  typeof listed === "string" ? listed : listed.map((value) => `\`${value}\``).join(", ");

function labelsOf({ labels }: MetricDefinition): string {
  const texts = Object.entries(labels).map(([label, listed]) => `\`${label}\`: ${values(listed)}`);
  return texts.length === 0 ? "-" : texts.join("<br>");
}

function componentsOf({ components }: MetricDefinition): string {
  return components.length === COMPONENTS.length ? "all" : components.join(", ");
}

/** A metric of the process itself: name, type, labels and meaning, as its library defines them. */
export interface ProcessMetric {
  name: string;
  type: string;
  help: string;
  labelNames: readonly string[];
}

export function processMetrics(): ProcessMetric[] {
  const made = createRegistry().getMetricsAsArray() as unknown as ProcessMetric[];
  return made.filter(({ name }) => !Object.hasOwn(METRICS, name));
}

export function metricsPage(): string {
  const own = Object.entries<MetricDefinition>(METRICS).map(([name, definition]) => [
    `\`${name}\``,
    definition.type,
    labelsOf(definition),
    componentsOf(definition),
    definition.needs === undefined ? definition.help : `With \`${definition.needs}\`. ${definition.help}`,
  ]);
  const ofProcess = processMetrics().map(({ name, type, help, labelNames }) => [
    `\`${name}\``,
    type,
    labelNames.map((label) => `\`${label}\``).join(", ") || "-",
    help,
  ]);
  return `# Metrics

Made by \`npm run docs\` from \`packages/service-kit/src/metrics/definitions.ts\`.

Each component has \`GET /metrics\` on its own port, as text for Prometheus. With \`SVC_METRICS_TOKEN\` all of them require it as a
bearer token; without it the API's answers only where no other machine can reach it. [operate.md](operate.md#monitoring) has alerts, a
dashboard, and what to do.

Labels never hold a caller's text. Counters and histograms begin at 0 with each process: use \`rate\` and \`increase\`. A gauge is counted
when it is asked for, so it is right after a crash too. The label \`component\` of the queries in operate.md is not made by the
components: the scrape configuration adds it.

## Of the service

${table(["metric", "type", "labels", "component", "meaning"], own)}

## Of each process

With several components in one process (\`SVC_TOPOLOGY=combined\`) they describe all of it, on every port: do not add them up.

${table(["metric", "type", "labels", "meaning"], ofProcess)}
`;
}
