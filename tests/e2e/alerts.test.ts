/** Each alert of deploy/monitoring fires for series that it is there for, and not for others; Debian's promtool judges. */
import { describe, expect, test } from "vitest";
import { ALERT_CASES } from "./support/alert-cases.ts";
import { expressionsOfAlerts, expressionsOfDashboard } from "./support/monitoring.ts";
import { differences, type InputSeries } from "./support/rule-tests.ts";

test("every alert has a case", () => {
  expect(Object.keys(ALERT_CASES)).toEqual(expressionsOfAlerts().map(({ name }) => name));
});

test("the dashboard shows the share of errors that its alert judges", () => {
  const [shown] = expressionsOfDashboard().filter(({ name }) => name === "Errors of the service");
  const [judged] = expressionsOfAlerts().filter(({ name }) => name === "SvcApiErrors");
  expect(`${shown?.expression} > bool 0.05`).toBe(judged?.expression);
});

describe.each(Object.entries(ALERT_CASES))(
  "%s",
  (alertname, { fires, quiet, at, labels, summary, absent = [] }) => {
    const judged = (
      input_series: readonly InputSeries[],
      alerts: readonly { labels: object; summary: string }[],
    ) =>
      differences({
        input_series,
        alert_rule_test: [
          {
            eval_time: at,
            alertname,
            exp_alerts: alerts.map((alert) => ({
              exp_labels: alert.labels,
              exp_annotations: { summary: alert.summary },
            })),
          },
        ],
      });

    test("fires", async () => {
      expect(await judged(fires, [{ labels, summary }])).toBe("");
    });

    test("stays quiet", async () => {
      expect(await judged(quiet, [])).toBe("");
    });

    const nothing: readonly InputSeries[] = [{ series: "something_else", values: "1x30" }];
    test(`${absent.length === 0 ? "stays quiet" : "fires"} where there are no series`, async () => {
      expect(await judged(nothing, absent)).toBe("");
    });
  },
);
