/**
 * Each component of a running system tells exactly the metrics of docs/metrics.md, with the labels that stand there. Those of settings
 * that are off here have tests with the setting.
 */
import { SERVICES } from "@svc/cli/instance";
import { versionOf } from "@svc/cli/version";
import { METRICS, type MetricDefinition } from "@svc/service-kit/metrics/definitions";
import { Api } from "@svc/test-kit/system/api";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { parseScrape, type Scrape, scrapeOf } from "@svc/test-kit/system/scrape";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { processMetrics } from "@svc/tools/pages/metrics";
import { beforeAll, expect, test } from "vitest";

const system = sharedSystem();
const OF_PROCESS = new Map(processMetrics().map((metric) => [metric.name, metric]));

beforeAll(async () => {
  const api = new Api(system.url);
  const input = await api.stage("input.txt", "the input");
  const answer = await api.exec({ lang: "py", code: 'open("made.txt", "w").write("1")', files: [input] });
  for (const file of answer.files) await api.bytes(file);
});

/** Names of samples by their metric: those of a histogram have endings. */
function metricOf({ types }: Scrape, sample: string): string {
  return types.has(sample) ? sample : sample.replace(/_(bucket|sum|count)$/, "");
}

function documentedTypes(component: (typeof SERVICES)[number]): Record<string, string> {
  const own = Object.entries<MetricDefinition>(METRICS).filter(
    ([, { components, needs }]) =>
      components.includes(component) && (needs === undefined || (IN_GUESTS && needs === "KVM_ENABLED")),
  );
  return Object.fromEntries([
    ...own.map(([name, { type }]) => [name, type]),
    ...[...OF_PROCESS].map(([name, { type }]) => [name, type]),
  ]);
}

test.each(SERVICES)("%s", async (component) => {
  const scrape = await scrapeOf(system.instance, component);
  expect(Object.fromEntries(scrape.types)).toEqual(documentedTypes(component));
  for (const { name, labels } of scrape.samples) {
    const metric = metricOf(scrape, name);
    const definition: MetricDefinition | undefined = METRICS[metric as keyof typeof METRICS];
    const documented =
      definition === undefined ? OF_PROCESS.get(metric)?.labelNames : Object.keys(definition.labels);
    const told = Object.keys(labels).filter((label) => label !== "le");
    expect(told.toSorted(), name).toEqual(documented?.toSorted());
    for (const [label, values] of Object.entries(definition?.labels ?? {}))
      if (typeof values !== "string") expect(values, `${name} ${label}`).toContain(labels[label]);
  }
});

test("the public route of the API tells the same names", async () => {
  const { types } = parseScrape(await (await fetch(`${system.url}/metrics`)).text());
  expect(Object.fromEntries(types)).toEqual(documentedTypes("api"));
});

test("svc_build_info has version and commit of this tree", async () => {
  const { samples } = await scrapeOf(system.instance, "runner");
  const [build] = samples.filter(({ name }) => name === "svc_build_info");
  const { version, commit = "unknown" } = versionOf();
  expect(build).toMatchObject({ labels: { version, commit }, value: 1 });
});
