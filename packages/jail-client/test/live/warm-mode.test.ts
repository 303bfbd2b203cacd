/** The tests of the jail once more, with Python programs in copies of a zygote. */
process.env.SVC_TEST_WARM = "1";
await import("./confinement.test.ts");
await import("./programs.test.ts");
await import("./syscalls.test.ts");
