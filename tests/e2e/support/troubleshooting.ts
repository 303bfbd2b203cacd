/** docs/troubleshooting.md as data: its tables by heading, and a test for each row, named by its symptom. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { describe, expect, test } from "vitest";

/** Symptoms of the rows below a heading, as they are written. */
function symptomsBelow(heading: string): string[] {
  const page = readFileSync(join(ROOT, "docs/troubleshooting.md"), "utf8");
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const [, , ...rows] = section.split("\n").filter((line) => line.startsWith("| "));
  return rows.map((row) => row.slice(2).split(" | ")[0] ?? "");
}

/**
 * A test for each row below the heading. `provoke`: by symptom, what makes it, sees it and its cause, and follows the row's advice.
 * `elsewhere`: rows that cannot be provoked here, each with the reason. A row of the page that is in neither fails.
 */
export function provokeEachRow(
  heading: string,
  provoke: Readonly<Record<string, () => unknown>>,
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  describe(heading, () => {
    test("each row of the page is provoked, or stands in the list of those that cannot be, with its reason", () => {
      const known = [...Object.keys(provoke), ...Object.keys(elsewhere)];
      expect(known.sort()).toEqual(symptomsBelow(heading).sort());
    });

    test.each(Object.entries(provoke))("%s", async (_symptom, provokeIt) => {
      await provokeIt();
    });
  });
}

/** The text has the messages of a symptom, which stand between backticks, with anything for `…`. */
export function expectSaid(text: string, symptom: string): void {
  for (const [, message = ""] of symptom.matchAll(/`([^`]+)`/g)) {
    const parts = message.split("…").map((part) => part.trim().replaceAll(/[^\w\s]/g, "\\$&"));
    expect(text).toMatch(new RegExp(parts.join("[\\s\\S]*?")));
  }
}
