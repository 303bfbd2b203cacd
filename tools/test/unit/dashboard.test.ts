/** What the dashboard refers to is there: its data source, metrics, labels. Prometheus evaluates it in tests/e2e/monitoring.test.ts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { METRICS, type MetricDefinition } from "@svc/service-kit/metrics/definitions";
import { expect, test } from "vitest";
import { processMetrics } from "../../src/pages/metrics.ts";

interface Panel {
  id: number;
  title: string;
  datasource: object;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: readonly { refId: string; expr: string; legendFormat: string }[];
}

const DASHBOARD = join(import.meta.dirname, "../../../deploy/monitoring/dashboard.json");
const { templating, panels } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as {
  templating: { list: readonly { name: string; type: string; query: string }[] };
  panels: readonly Panel[];
};
const targets = panels.flatMap((panel) => panel.targets.map((target) => ({ ...target, title: panel.title })));

/** Labels that Prometheus adds, and the metric of its own. */
const OF_SCRAPES = ["component", "instance", "job", "le"];
const LABELS: ReadonlyMap<string, readonly string[]> = new Map([
  ["up", []],
  ...processMetrics().map(({ name, labelNames }): [string, readonly string[]] => [name, labelNames]),
  ...Object.entries<MetricDefinition>(METRICS).flatMap(([name, { type, labels }]) => {
    const endings = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    return endings.map((ending): [string, string[]] => [`${name}${ending}`, Object.keys(labels)]);
  }),
]);

/** All words that are no function, label, range or operator. */
function metricsOf(expr: string): string[] {
  const bare = expr.replaceAll(/\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)|\w+(?=\()/g, " ");
  return (bare.match(/[a-z]\w+/g) ?? []).filter((word) => word !== "or" && word !== "sum" && word !== "max");
}

function labelsOf(expr: string): string[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(", "));
  return [...grouped, ...[...expr.matchAll(/(\w+)(?==|!=)/g)].map(([, name = ""]) => name)];
}

test("each panel has a number of its own, the chosen data source, and a place that no other has", () => {
  expect(templating.list).toMatchObject([{ name: "datasource", type: "datasource", query: "prometheus" }]);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { title, datasource, gridPos, targets } of panels) {
    expect(datasource, title).toEqual({
      type: "prometheus",
      uid: expect.stringMatching(/^\$\{datasource\}$/),
    });
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
  }
});

test.each(targets)(
  "$title, $refId: metrics and labels are those of the components",
  ({ expr, legendFormat }) => {
    const metrics = metricsOf(expr);
    expect(metrics).not.toEqual([]);
    expect([...LABELS.keys()]).toEqual(expect.arrayContaining(metrics));
    const known = [...OF_SCRAPES, ...metrics.flatMap((name) => LABELS.get(name) ?? [])];
    expect(known).toEqual(expect.arrayContaining(labelsOf(expr)));
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = ""]) => name);
    // A sum keeps the labels that it is grouped by.
    const kept = expr.includes(" by (") ? labelsOf(expr) : OF_SCRAPES;
    expect(kept).toEqual(expect.arrayContaining(shown));
  },
);
