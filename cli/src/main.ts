/** ./svc as operators have it. */
import { runCommandLine } from "./command-line.ts";

await runCommandLine();
