/** In a process of its own: the collections of the test runner would be seen too. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MODULE = fileURLToPath(new URL("../../src/memory/young-garbage.ts", import.meta.url));

/** The asked-for collections after each of the amounts, as V8's trace names them, and what `gc` is afterwards. */
function afterMoving(...mebibytes: readonly number[]): string[] {
  const program = `
    import { noteMovedBytes } from ${JSON.stringify(MODULE)};
    for (const mebibytes of ${JSON.stringify(mebibytes)}) {
      noteMovedBytes(mebibytes * 2 ** 20);
      console.log("moved", mebibytes);
    }
    console.log("gc is", typeof globalThis.gc);`;
  const output = execFileSync(process.execPath, ["--trace-gc", "--input-type=module", "--eval", program], {
    encoding: "utf8",
  });
  return output.split("\n").flatMap((line) => {
    const collection = /: (\S+) .* testing;/.exec(line)?.[1];
    return collection === undefined ? (/^(moved|gc) .*/.exec(line) ?? []).slice(0, 1) : [collection];
  });
}

test("a young collection is asked for every 16 MiB, and nobody else gets the collector", () => {
  expect(afterMoving(15, 1, 15, 1, 40, 1)).toEqual([
    "moved 15",
    "Scavenge",
    "moved 1",
    "moved 15",
    "Scavenge",
    "moved 1",
    "Scavenge",
    "moved 40",
    "moved 1",
    "gc is undefined",
  ]);
});
