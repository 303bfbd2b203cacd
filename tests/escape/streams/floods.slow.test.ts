/** Floods of output that come one byte at a time. */
import { expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";

test.each([
  ["stdout", "OL", "dd if=/dev/zero bs=1 2> /dev/null"],
  ["stderr", "EL", "exec dd if=/dev/zero bs=1 of=/proc/self/fd/2"],
])("%s in pieces of one byte ends its program where any other flood does", async (stream, status, code) => {
  const answer = await hostile({ lang: "bash", code, run_timeout: 120_000 });
  const message = `${stream} length exceeded`;
  expect(answer).toMatchObject({ status, code: 137, signal: "SIGKILL", message });
  expect(answer.stderr).toContain(`[sandbox] ${message} (64 KiB kept of `);
});
