/** The tests of the jail once more, with Python programs in copies of a zygote. */
import { mode } from "@svc/test-kit/jail/mode";

mode.warm = true;
await import("./confinement.test.ts");
await import("./programs.test.ts");
await import("./syscalls.test.ts");
