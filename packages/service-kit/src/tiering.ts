/**
 * When V8 compiles a function for speed. Its own limits suit loops: a function must have been called some hundred
 * times since it last met a value of a new shape. What a request calls once or twice is interpreted for thousands of
 * requests, and one new shape begins the count anew. These limits suit a service: the steady state is reached
 * after some hundred requests, and the first hundred pay for it with a few milliseconds each of compiling beside them.
 *
 * Set while the process runs, not on its command line: there they are part of the key of Node's compile cache, which is
 * written without them.
 */
import { setFlagsFromString } from "node:v8";

/** V8's own: 400, 3000 and 500. None must be 0: V8 divides by it. */
const LIMITS = {
  "invocation-count-for-maglev": 100,
  "invocation-count-for-turbofan": 1000,
  "minimum-invocations-after-ic-update": 10,
} as const;

/** For the whole process and for good. Called once, before the first request. */
export function compileWhatRequestsCall(): void {
  for (const [flag, calls] of Object.entries(LIMITS)) setFlagsFromString(`--${flag}=${calls}`);
}
