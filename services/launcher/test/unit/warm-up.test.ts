import { expect, test } from "vitest";
import { areWarm } from "../../src/guests/warm-up.ts";

const line = (name: string, number: string, count: number) =>
  `svc_sandbox_warm_jails{zygote="${name}",number="${number}"} ${count}\n`;

test("interpreters are warm when as many wait as are wanted", () => {
  const python = (waiting: number) => line("python", "waiting", waiting) + line("python", "wanted", 2);
  expect(areWarm(python(1))).toBe(false);
  expect(areWarm(python(2))).toBe(true);
  expect(areWarm(python(2) + line("node", "wanted", 1))).toBe(false);
  expect(areWarm(python(2) + line("node", "wanted", 1) + line("node", "waiting", 1))).toBe(true);
});

test("a runner that starts none warm waits for none", () => {
  expect(areWarm("# HELP svc_sandbox_warm_jails Jails\nsvc_other 1\n")).toBe(true);
});
