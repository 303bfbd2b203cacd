/** The entry point of ./svc for operators. */
import { runCommandLine } from "./command-line.ts";

await runCommandLine();
