/**
 * Makes V8 optimise functions sooner. By default a function needs some hundred calls since it last met a value of a new shape. A
 * function that a request calls once or twice stays interpreted for thousands of requests, and one new shape restarts the count.
 * With these limits the service reaches its steady state after some hundred requests. The first hundred pay for it: compiling
 * beside them costs each a few milliseconds. Set at run time, because flags on the command line are part of the key of
 * Node's compile cache, which is written without them.
 */
import { setFlagsFromString } from "node:v8";

/** V8's own: 400, 3000 and 500. None must be 0: V8 divides by it. */
const LIMITS = {
  "invocation-count-for-maglev": 100,
  "invocation-count-for-turbofan": 1000,
  "minimum-invocations-after-ic-update": 10,
} as const;

/** Affects the whole process and cannot be undone. Call it once, before the first request. */
export function compileWhatRequestsCall(): void {
  for (const [flag, calls] of Object.entries(LIMITS)) setFlagsFromString(`--${flag}=${calls}`);
}
