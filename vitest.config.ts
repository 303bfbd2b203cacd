import { defineConfig } from "vitest/config";

// unit: pure, no service needed. live: needs root, the built image and jaild or redis-server. e2e: starts the whole system.
// compat: the same with an image of all languages. s3: against a real S3 server, Ceph's, which the project starts.
// client: LibreChat's own client, an npm package, against the whole system.
// escape: hostile programs against the whole system; slow: those of them that need seconds each.
// v2: in the virtual machine of ./svc test --v2.
// escape, slow and compat run once with warm starts and once without (./svc test): the second time without the files for
// which it does not matter how programs start.
const cold = process.env.SANDBOX_WARM_START === "off";
const sameColdAndWarm = cold
  ? [
      "tests/escape/docs/*",
      "tests/escape/requests/*",
      "tests/escape/network/drip.slow.test.ts",
      "tests/escape/outputs/swap.slow.test.ts",
      "tests/escape/tenants/five-others.test.ts",
      "tests/compat/compilation.test.ts",
      "tests/compat/toolchains.test.ts",
    ]
  : [];
const slowness = Number(process.env.SVC_TEST_SLOWNESS ?? 1);

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["{packages,services,cli,bench}/**/test/unit/**/*.test.ts"],
          // A property of thousands of cases takes seconds, and more on a machine that does other work.
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "live",
          include: ["{packages,services,cli,runtimes}/**/test/live/**/*.test.ts"],
          testTimeout: 60_000 * slowness,
          hookTimeout: 60_000 * slowness,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["tests/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "compat",
          include: ["tests/compat/**/*.test.ts"],
          exclude: sameColdAndWarm,
          testTimeout: 120_000,
          hookTimeout: 480_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "escape",
          include: ["tests/escape/**/*.test.ts"],
          exclude: ["**/*.slow.test.ts", ...sameColdAndWarm],
          globalSetup: ["tests/escape/support/setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "slow",
          include: ["tests/escape/**/*.slow.test.ts"],
          exclude: sameColdAndWarm,
          globalSetup: ["tests/escape/support/setup.ts"],
          testTimeout: 900_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "s3",
          include: ["{packages,services}/*/test/s3/**/*.test.ts", "tests/s3/**/*.test.ts"],
          globalSetup: ["packages/object-store/test/support/s3/setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "client",
          include: ["tests/client/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "v2",
          include: ["tests/v2/**/*.test.ts"],
          testTimeout: 60_000 * slowness,
          hookTimeout: 60_000 * slowness,
          fileParallelism: false,
        },
      },
    ],
  },
});
