/** The filters of `./svc test` pick test files by a part of their path. One that picks none of a chosen suite is a mistake. */
import { NODE } from "@svc/cli/components";
import { Problem } from "@svc/cli/problem";
import { mustRun, shown } from "@svc/cli/system/run";
import { suiteHas } from "./machines.ts";
import type { Suite } from "./plan.ts";
import { MACHINE_PROJECTS, VITEST, VITEST_PROJECTS } from "./suites.ts";

/** Throws a Problem for the first filter that picks no file of a wanted suite; it says which suites have such files. */
export async function requireMatches(
  filters: readonly string[],
  wanted: (suite: Suite) => boolean,
): Promise<void> {
  const chosen = [...VITEST_PROJECTS, ...MACHINE_PROJECTS].filter(wanted);
  for (const filter of filters) {
    const matching = await suitesWith(filter);
    if (chosen.some((suite) => matching.includes(suite))) continue;
    throw new Problem(
      `no test file of ${chosen.join(", ")} has ${shown([filter])} in its path`,
      matching.length === 0
        ? "FILTER is a part of the path of a test file, from the root of the repository: tests/e2e/uploads"
        : `Run it with its suite: ${matching.map((suite) => shown(["./svc", "test", `--${suite}`, filter])).join(" or ")}`,
    );
  }
}

/** The suites that have a file with this part in its path, as vitest itself picks files. */
async function suitesWith(filter: string): Promise<Suite[]> {
  const projects = new Set<string | undefined>();
  await mustRun([NODE, VITEST, "list", "--filesOnly", "--no-color", filter], "listing the test files", {
    onLine: (line) => projects.add(/^\[(\w+)\] /.exec(line)?.[1]),
  });
  return [
    ...VITEST_PROJECTS.filter((project) => projects.has(project)),
    ...MACHINE_PROJECTS.filter((project) => suiteHas(project, filter)),
  ];
}
