/** `promtool test rules`: what Prometheus makes of given series, without a server and at any time of theirs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "@svc/cli/system/run";
import { MONITORING, promtool } from "./prometheus.ts";

export interface InputSeries {
  series: string;
  /** One for each minute, in Prometheus' notation: `0+2x10` rises by 2 each minute. */
  values: string;
}

export interface RuleTest {
  input_series: readonly InputSeries[];
  alert_rule_test?: readonly {
    eval_time: string;
    alertname: string;
    exp_alerts: readonly { exp_labels: object; exp_annotations: object }[];
  }[];
  promql_expr_test?: readonly {
    expr: string;
    eval_time: string;
    exp_samples: readonly { labels: string; value: number }[];
  }[];
}

/** Empty: all is as expected. Otherwise what promtool says of the differences. */
export async function differences(test: RuleTest): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "svc-rules-"));
  try {
    const file = join(folder, "test.json");
    const tests = [{ interval: "1m", ...test }];
    writeFileSync(file, JSON.stringify({ rule_files: [join(MONITORING, "alerts.yml")], tests }));
    const { code, tail } = await run([await promtool(), "test", "rules", file]);
    return code === 0 ? "" : tail.join("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}
