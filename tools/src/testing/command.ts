/** `./svc test`: installs and builds what the tests need, then runs every check and every test. */
import { defineCommand } from "@svc/cli/command";
import { BASE } from "@svc/cli/install/image";
import { buildJailTests, INSTALL_STEPS, install } from "@svc/cli/install/install";
import type { Purpose } from "@svc/cli/install/packages";
import { resolveInstance } from "@svc/cli/instance";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import { continueAsRoot } from "@svc/cli/system/root";
import { Progress } from "@svc/cli/terminal";
import { chaosSettings } from "./chaos.ts";
import { requireMatches } from "./filters.ts";
import { isIn, type Scope, type Suite } from "./plan.ts";
import { runSuites } from "./suite-runner.ts";
import { MACHINE_PROJECTS, VITEST_PROJECTS } from "./suites.ts";
import { summary } from "./summary.ts";

const OPTIONS = {
  unit: { doc: "Only the unit tests." },
  live: { doc: "Only the tests with a real jail, Redis and files." },
  e2e: { doc: "Only the tests that start the whole system." },
  escape: { doc: "Only the tests of hostile programs, in the whole system." },
  slow: { doc: "Only the tests of hostile programs that need seconds each." },
  s3: { doc: "Only the tests against a real S3 server, Ceph's, which is installed from Debian." },
  client: { doc: "Only the tests with LibreChat's own client, an npm package of 550 MB." },
  kubernetes: { doc: "Only the tests of the Kubernetes manifests; kubectl is installed from npm, 40 MB." },
  images: { doc: "Only the tests of the container images, which are built; podman must be there." },
  microvm: { doc: "Only the tests of programs in microVMs; QEMU must be there." },
  compat: { doc: "Only the tests of all languages, in an image of their own (.pkgs-all)." },
  v2: { doc: "Only the tests in a virtual machine that has cgroup v2; it is made of Debian packages." },
  kvm: { doc: "Only the tests of microVMs that KVM runs, in a virtual machine whose KVM works; 10 minutes." },
  fuzz: { doc: "Only the fuzz targets of the jail, half a minute; clang is installed from Debian, 600 MB." },
  chaos: { doc: "Only the whole system under load while faults come, 30 seconds of a random seed." },
  seed: {
    value: "N",
    doc: "With --chaos: this seed, or these, like 1-20. A seed says which faults come when.",
  },
  seconds: { value: "S", doc: "With --chaos: how long faults come, for each seed." },
  ci: {
    doc: "What CI runs: every suite but the images, microVMs and KVM, without the files that only --all has. Failed tests run once more.",
  },
  all: { doc: "Everything. Like --ci it installs the packages of every suite." },
  "packages-dir": {
    value: "DIR",
    doc: "Root image and runtimes (SANDBOX_PACKAGES_DIRECTORY; default: .pkgs).",
  },
} as const;

/** The suites that have an option of their own. */
const CHOICES = [...VITEST_PROJECTS, ...MACHINE_PROJECTS, "fuzz"] as const;
/** Suites that need Debian packages that nothing else does. */
const PURPOSES: Partial<Record<Suite, readonly Purpose[]>> = {
  s3: ["test-s3"],
  fuzz: ["test-fuzz"],
  v2: ["test-machines"],
  kvm: ["test-machines", "microvm"],
};

export const test = defineCommand({
  usage:
    "test [--ci|--all] [--unit] [--live] [--e2e] [--escape] [--slow] [--s3] [--client] [--kubernetes] [--images] [--microvm] [--compat] [--v2] [--kvm] [--fuzz] [--chaos [--seed N] [--seconds S]] [FILTER…] [-- VITEST-ARG…]",
  positionals: "[FILTER...]",
  summary: "Runs the checks (types, lint, jail, shell) and tests; the last line counts them.",
  details: `
Without a choice the checks run, and the unit, live and e2e tests without the files that need minutes.
A suite that is chosen runs as a whole. FILTER picks test files of the chosen suites by a part of their path; each must pick one.
With --ci a test that failed runs once more. When it passes then it counts as passed and as flaky, and is told of before the last line, as failed tests are.
The tests have a root image of their own, which .pkgs/current names; the images of running and stopped copies stay.
Exit codes: 0 when all passed, else 1.`,
  options: OPTIONS,
  run: async ({ values, positionals, rest }) => {
    if (values.ci && values.all)
      throw new Problem("--ci and --all exclude each other", undefined, USAGE_EXIT_CODE);
    if ((values.seed ?? values.seconds) !== undefined && !values.chaos)
      throw new Problem("--seed and --seconds are of --chaos", "Say --chaos, too.", USAGE_EXIT_CODE);
    const chaos = chaosSettings({
      seed: values.seed,
      seconds: values.seconds,
      isFixed: values.ci || values.all,
      isCi: values.ci,
    });
    const chosen = CHOICES.filter((suite) => values[suite]);
    const isFiltered = positionals.length + rest.length > 0;
    const wanted = (suite: Suite): boolean => {
      // Checks and fuzz targets are no files to pick from.
      if (isFiltered && (suite === "checks" || suite === "fuzz")) return false;
      if (values.ci || values.all) return isIn(values.ci ? "ci" : "all", suite);
      return chosen.length > 0 ? (chosen as readonly Suite[]).includes(suite) : isIn("usual", suite);
    };
    await requireMatches(positionals, wanted);
    const asRoot = await continueAsRoot(process.argv.slice(2), "testing the jail");
    if (asRoot !== undefined) return asRoot;
    const env =
      values["packages-dir"] === undefined
        ? process.env
        : { ...process.env, SANDBOX_PACKAGES_DIRECTORY: values["packages-dir"] };
    const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env);
    const scope: Scope = values.ci ? "ci" : values.all || chosen.length > 0 || isFiltered ? "all" : "usual";
    const special = Object.entries(PURPOSES).filter(([suite]) => wanted(suite as Suite));
    const needed = new Set<Purpose>(["test", ...special.flatMap(([, purposes]) => purposes)]);
    const progress = new Progress(INSTALL_STEPS + 1);
    // Most suites look at an image of what is always installed; some need that a language is missing.
    await install([...needed], instance, progress, { choice: BASE });
    await progress.step("The tests of the jail (make -C jail faults build/unit)", buildJailTests);
    const packagesDir = values["packages-dir"];
    const chosenFiles = { filters: positionals, vitestArguments: rest };
    const outcomes = await runSuites(wanted, {
      scope,
      ...chosenFiles,
      instance,
      retry: values.ci,
      chaos,
      packagesDir,
    });
    console.log(summary(outcomes));
    if (isFiltered && outcomes.every(({ passed, failed }) => passed + failed === 0))
      throw new Problem(
        "no test ran",
        "-t must be a part of the name of a test in the picked files; --ci leaves out the files that only --all has",
      );
    return outcomes.every(({ failed }) => failed === 0) ? 0 : 1;
  },
});
