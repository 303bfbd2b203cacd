/** What the components of a copy tell at /metrics, for tests. */
import type { Instance, Service } from "@svc/cli/instance";

export interface ScrapedSample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Scrape {
  /** Type of each metric by its name. */
  types: ReadonlyMap<string, string>;
  samples: readonly ScrapedSample[];
}

export async function scrapeOf(instance: Instance, component: Service): Promise<Scrape> {
  const answer = await fetch(`http://127.0.0.1:${instance.ports[component]}/metrics`);
  if (answer.status !== 200) throw new Error(`/metrics of ${component} answered ${answer.status}`);
  return parseScrape(await answer.text());
}

export function parseScrape(text: string): Scrape {
  const types = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = "", type = ""]) => [name, type]),
  );
  const samples = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = "", labels = "", value]) => ({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, given]) => [label, given]),
      ) as Record<string, string>,
      value: Number(value),
    }),
  );
  return { types, samples };
}

/** Sum of the samples of a name that have these labels. */
export function sumOf(
  { samples }: Scrape,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return samples
    .filter(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    )
    .reduce((sum, { value }) => sum + value, 0);
}
