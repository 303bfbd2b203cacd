/** In a process of its own: what V8 is told lasts as long as the process. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MODULE = fileURLToPath(new URL("../../src/tiering.ts", import.meta.url));
/** Of the bits that `%GetOptimizationStatus` answers: the function runs compiled for speed. */
const OPTIMIZED = 1 << 4;
const CALLS = 300;
/** The first calls bring objects of as many shapes. */
const SHAPES = 40;

/** Whether a function that is called now and then ends up compiled for speed, after the statements. */
function isCompiledAfter(statements: string): boolean {
  const program = `
    import { setTimeout as sleep } from "node:timers/promises";
    import { compileWhatRequestsCall } from ${JSON.stringify(MODULE)};
    ${statements}
    const sum = (value) => value.a + value.b;
    for (let call = 0; call < ${CALLS}; call++) {
      sum({ ["shape" + Math.min(call, ${SHAPES})]: 0, a: 1, b: 2 });
      await sleep(1);
    }
    console.log((%GetOptimizationStatus(sum) & ${OPTIMIZED}) !== 0);`;
  const output = execFileSync(
    process.execPath,
    ["--allow-natives-syntax", "--input-type=module", "--eval", program],
    { encoding: "utf8", timeout: 50_000 },
  );
  return JSON.parse(output);
}

test("a function that some hundred requests have called is compiled for speed, although the first ones brought many shapes", () => {
  expect(isCompiledAfter("compileWhatRequestsCall();")).toBe(true);
});

test("V8 by itself does not compile it", () => {
  expect(isCompiledAfter("")).toBe(false);
});
