/**
 * A reporter of vitest. Writes the results of a run for ./svc test, as JSON (the type Results), to the file that the
 * variable TEST_REPORT names.
 */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";

export interface Results {
  passed: number;
  /** One text per failed test, or file that fails as a whole: its file and name, and below that the start of what it said. */
  failures: string[];
  /** The same for each test that failed and passed when it was repeated; it counts as passed. */
  flaky: string[];
  /** Unhandled errors that failed attempts of flaky tests left behind. vitest ends with 1 for them. */
  leftBehind: number;
}

type Errors = Parameters<NonNullable<Reporter["onTestRunEnd"]>>[1];
type Failure = Errors[number];

const ERROR_LINES = 12;

export default class implements Reporter {
  readonly #path = process.env.TEST_REPORT;

  constructor() {
    // Tests start systems with their own environment, and a system refuses a variable that it does not know.
    delete process.env.TEST_REPORT;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: Errors): void {
    if (this.#path) writeFileSync(this.#path, JSON.stringify(resultsOf(modules, unhandled)));
  }
}

function resultsOf(modules: readonly TestModule[], unhandled: Errors): Results {
  const results: Results = { passed: 0, failures: [], flaky: [], leftBehind: 0 };
  const stray = new Set(unhandled);
  for (const module of modules) {
    const file = relative(process.cwd(), module.moduleId);
    for (const test of module.children.allTests()) {
      const { state, errors = [] } = test.result();
      const title = `${file} > ${test.fullName}`;
      if (state === "passed") results.passed++;
      if (state === "failed") results.failures.push(told(title, errors));
      if (state !== "passed" || errors.length === 0) continue;
      // A failed attempt leaves behind what it had begun. What of that fails later is an error that nobody awaits.
      const left = [...stray].filter((error) => isOf(error, test));
      for (const error of left) stray.delete(error);
      results.leftBehind += left.length;
      results.flaky.push(told(title, [...errors, ...left]));
    }
    for (const part of [module, ...module.children.allSuites()]) {
      const title = "fullName" in part ? `${file} > ${part.fullName}` : file;
      if (part.errors().length > 0) results.failures.push(told(title, part.errors()));
    }
  }
  for (const error of stray) results.failures.push(told(placeOf(error), [error]));
  return results;
}

const isOf = (error: Failure, test: TestCase) =>
  error.VITEST_TEST_NAME === test.name && error.VITEST_TEST_PATH === test.module.moduleId;

/** The place of an error that no test threw. */
function placeOf({ VITEST_TEST_PATH: path, VITEST_TEST_NAME: name }: Failure): string {
  if (!path) return "an error outside of the tests";
  const file = relative(process.cwd(), String(path));
  return name ? `${file} > an unhandled error during or after "${name}"` : `${file} > an unhandled error`;
}

function told(title: string, errors: readonly Pick<Failure, "message" | "stack">[]): string {
  const lines = errors.flatMap(({ message, stack }) => (stack || message).split("\n"));
  return [title, ...lines.slice(0, ERROR_LINES)].join("\n  ");
}
