/** The expressions of deploy/monitoring, and those of them that have no data on a system without faults. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MONITORING } from "./prometheus.ts";

/** By alert. */
export const NO_DATA: Readonly<Record<string, string>> = {
  SvcCertificateExpires: "certificates, which components of one machine do not have",
  SvcDiskNearlyFull: "metrics of the node exporter, which this system does not bring",
};

export interface Expression {
  name: string;
  expression: string;
}

/** As conditions: 0 or 1 for each series, where the alert has only those that it fires for. */
export function expressionsOfAlerts(): Expression[] {
  const text = readFileSync(join(MONITORING, "alerts.yml"), "utf8");
  const rules = [
    ...text.matchAll(/- alert: (\w+)\n(?: +#.*\n)? +expr: (?:>-\n)?((?:.*\n)+?) +(?:for|labels):/g),
  ];
  return rules.map(([, name = "", lines = ""]) => ({
    name,
    expression: lines
      .trim()
      .replaceAll(/\s+/g, " ")
      .replaceAll(/ (==|<|>) ([\d.]+)(?= or |$)/g, " $1 bool $2"),
  }));
}

interface Panel {
  title: string;
  targets: readonly { expr: string }[];
}

/** With a range that holds all load of the test. */
export function expressionsOfDashboard(): Expression[] {
  const { panels } = JSON.parse(readFileSync(join(MONITORING, "dashboard.json"), "utf8")) as {
    panels: readonly Panel[];
  };
  return panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({ name: title, expression: expr.replaceAll("$__rate_interval", "5m") })),
  );
}
