/** As many outputs of the largest size as there may be, from one file with fifty names. */
import { expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

const LARGEST = 10_000_000;

test("fifty files of the largest size: what is promised can be had, the rest is named", async () => {
  const answer = await hostile({
    lang: "bash",
    code: `head -c ${LARGEST} /dev/zero > f00; for n in $(seq -w 1 49); do ln f00 f$n; done`,
  });
  expect(answer.files.length + (answer.files_omitted_count ?? 0)).toBe(50);
  for (const { reason } of answer.files_omitted ?? []) expect(reason).toBe("total_size");
  for (const file of [answer.files[0], answer.files.at(-1)]) {
    if (file !== undefined) expect((await attacker.bytes(file)).length).toBe(LARGEST);
  }
});
