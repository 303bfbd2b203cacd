/** Creates the metrics of definitions.ts in a registry. Components get their own metrics only here. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { METRICS, type MetricDefinition, type MetricName } from "./definitions.ts";

type Named<Type> = {
  [Name in MetricName]: (typeof METRICS)[Name]["type"] extends Type ? Name : never;
}[MetricName];
export type CounterName = Named<"counter">;
export type GaugeName = Named<"gauge">;
export type HistogramName = Named<"histogram">;
/** Names of a metric's labels. */
export type LabelOf<Name extends MetricName> = keyof (typeof METRICS)[Name]["labels"] & string;

export function counter<Name extends CounterName>(registry: Registry, name: Name): Counter<LabelOf<Name>> {
  const made = new Counter<LabelOf<Name>>(options(registry, name));
  for (const labels of allLabels(METRICS[name])) made.inc(labels as Record<LabelOf<Name>, string>, 0);
  return made;
}

/** `collect` sets the gauge at each scrape. */
export function gauge<Name extends GaugeName>(
  registry: Registry,
  name: Name,
  collect?: (gauge: Gauge<LabelOf<Name>>) => void | Promise<void>,
): Gauge<LabelOf<Name>> {
  return new Gauge<LabelOf<Name>>({
    ...options(registry, name),
    ...(collect === undefined
      ? {}
      : {
          collect() {
            return collect(this);
          },
        }),
  });
}

export function histogram<Name extends HistogramName>(
  registry: Registry,
  name: Name,
): Histogram<LabelOf<Name>> {
  const { buckets = [] }: MetricDefinition = METRICS[name];
  return new Histogram<LabelOf<Name>>({ ...options(registry, name), buckets: [...buckets] });
}

function options<Name extends MetricName>(registry: Registry, name: Name) {
  const { help, labels }: MetricDefinition = METRICS[name];
  return { name, help, labelNames: Object.keys(labels) as LabelOf<Name>[], registers: [registry] };
}

/** Every combination of the labels' values, when all are listed. None for a metric without labels, which starts at 0 by itself. */
function allLabels({ labels }: MetricDefinition): Record<string, string>[] {
  const entries = Object.entries(labels);
  if (entries.length === 0) return [];
  return entries.reduce<Record<string, string>[]>(
    (made, [label, values]) =>
      typeof values === "string"
        ? []
        : made.flatMap((one) => values.map((value) => ({ ...one, [label]: value }))),
    [{}],
  );
}
