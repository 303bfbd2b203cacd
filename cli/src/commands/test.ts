/** `./svc test`: installs and builds what the tests need, then runs every check and every test. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineCommand } from "../command.ts";
import { installTestClient } from "../install/client.ts";
import { INSTALL_STEPS, install } from "../install/install.ts";
import type { Purpose } from "../install/packages.ts";
import { ROOT, resolveInstance } from "../instance.ts";
import { continueAsRoot } from "../system/root.ts";
import { Progress, paint } from "../terminal.ts";
import {
  FUZZ,
  type Outcome,
  runCheck,
  runVitest,
  timesOf,
  USUAL_CHECKS,
  USUAL_PROJECTS,
  VITEST_PROJECTS,
} from "../testing/suites.ts";
import { buildMachine, runMachine } from "../testing/virtual-machine.ts";

const OPTIONS = {
  unit: { doc: "Only the unit tests." },
  live: { doc: "Only the tests with a real jail, Redis and files." },
  e2e: { doc: "Only the tests that start the whole system." },
  escape: { doc: "Only the tests of hostile programs, in the whole system." },
  slow: { doc: "Only the tests of hostile programs that need seconds each." },
  s3: { doc: "Only the tests against a real S3 server, Ceph's, which is installed from Debian." },
  client: { doc: "Only the tests with LibreChat's own client, an npm package of 550 MB." },
  compat: { doc: "Only the tests of all languages, in an image of their own (.pkgs-all)." },
  v2: { doc: "Only the tests in a virtual machine that has cgroup v2; it is made of Debian packages." },
  fuzz: { doc: "Only the fuzz targets of the jail, half a minute; clang is installed from Debian, 600 MB." },
  all: {
    doc: "Everything, the slow, S3, client and language tests, fuzzing and the virtual machine too: what CI runs.",
  },
  "packages-dir": {
    value: "DIR",
    doc: "Root image and runtimes (SANDBOX_PACKAGES_DIRECTORY; default: .pkgs).",
  },
} as const;

/** The other suites look at an image of what is always installed; some need that a language is missing. */
const USUAL_LANGUAGES = "py";

export const test = defineCommand({
  usage:
    "test [--unit] [--live] [--e2e] [--escape] [--slow] [--s3] [--client] [--compat] [--v2] [--fuzz] [--all] [FILTER…] [-- VITEST-ARG…]",
  summary: "Runs the checks (types, lint, jail, shell) and all tests; the last line counts them.",
  details: `
Without a choice everything but the slow, S3, client and language tests, fuzzing and the virtual machine runs. FILTER picks test files by a part of their path.
The root image (.pkgs) then holds the languages that are always installed, and no others.
Exit codes: 0 when all passed, else 1.`,
  options: OPTIONS,
  run: async ({ values, positionals, rest }) => {
    const asRoot = await continueAsRoot(process.argv.slice(2), "testing the jail");
    if (asRoot !== undefined) return asRoot;
    const env =
      values["packages-dir"] === undefined
        ? process.env
        : { ...process.env, SANDBOX_PACKAGES_DIRECTORY: values["packages-dir"] };
    const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env);
    const withS3 = values.s3 || values.all;
    const withClient = values.client || values.all;
    const withFuzz = values.fuzz || values.all;
    const withMachine = values.v2 || values.all;
    const purposes: Purpose[] = [
      "test",
      ...(withS3 ? ["test-s3" as const] : []),
      ...(withFuzz ? ["test-fuzz" as const] : []),
      ...(withMachine ? ["test-v2" as const] : []),
    ];
    const progress = new Progress(INSTALL_STEPS + (withClient ? 1 : 0) + (withMachine ? 1 : 0));
    await install(purposes, instance, progress, USUAL_LANGUAGES);
    if (withClient) await progress.step("LibreChat's client (npm ci in tests/client)", installTestClient);
    if (withMachine) await progress.step("The virtual machine", (note) => buildMachine(instance, note));
    const chosen = values.all ? VITEST_PROJECTS : VITEST_PROJECTS.filter((project) => values[project]);
    const allLanguages = await installCompat(values);
    const vitestArguments = [...positionals, ...rest];
    const usual = chosen.length === 0 && !values.fuzz && !values.v2;
    const everything = (values.all || usual) && vitestArguments.length === 0;
    const outcomes: Outcome[] = [];
    if (everything) for (const name of USUAL_CHECKS) outcomes.push(await runCheck(name));
    if (withFuzz) outcomes.push(await runCheck(FUZZ));
    const reports = mkdtempSync(join(tmpdir(), "svc-test-"));
    try {
      for (const project of usual ? USUAL_PROJECTS : chosen) {
        const own = project === "compat" ? allLanguages : {};
        for (const { title, env } of timesOf(project, process.env)) {
          const report = join(reports, `${title}.json`);
          outcomes.push(
            await runVitest(project, vitestArguments, report, { title, env: { ...own, ...env } }),
          );
        }
      }
      if (withMachine) outcomes.push(...(await runMachine(positionals)));
    } finally {
      rmSync(reports, { recursive: true });
    }
    return summarize(outcomes);
  },
});

/** An image of all languages, apart from the one that is in use; answers the variables that name it. */
async function installCompat(values: {
  compat: boolean;
  all: boolean;
  "packages-dir": string | undefined;
}): Promise<Record<string, string>> {
  if (!values.compat && !values.all) return {};
  const env = { SANDBOX_PACKAGES_DIRECTORY: values["packages-dir"] ?? join(ROOT, ".pkgs-all") };
  const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env);
  await install(["test"], instance, new Progress(INSTALL_STEPS), "all");
  return env;
}

function summarize(outcomes: readonly Outcome[]): number {
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  if (failures.length > 0) console.log(`\nFailed:\n\n${failures.join("\n\n")}`);
  console.log("");
  for (const { name, passed, failed, seconds } of outcomes) {
    const mark = failed === 0 ? paint(process.stdout, "green", "ok  ") : paint(process.stdout, "red", "FAIL");
    console.log(
      `${mark}  ${name.padEnd(24)} ${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed  ${seconds.toFixed(1)} s`,
    );
  }
  const sum = (pick: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + pick(outcome), 0);
  const failed = sum((outcome) => outcome.failed);
  console.log(`\n${sum((outcome) => outcome.passed)} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}
