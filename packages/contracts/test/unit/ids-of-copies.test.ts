import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { expect, onTestFinished, test, vi } from "vitest";
import { newId } from "../../src/index.ts";

test("bytes that were made before the clock jumped, as that of a copied machine does, become no id", () => {
  const fill = vi.spyOn(crypto, "randomFillSync");
  syncBuiltinESMExports();
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
    fill.mockRestore();
    syncBuiltinESMExports();
  });
  const made = () => {
    newId();
    return fill.mock.calls.length;
  };
  vi.setSystemTime(Date.now() + 86_400_000);
  const first = made();
  expect([made(), made()]).toEqual([first, first]);
  vi.setSystemTime(Date.now() + 120_000);
  expect(made()).toBe(first + 1);
  vi.setSystemTime(Date.now() - 86_400_000);
  expect(made()).toBe(first + 2);
  expect(made()).toBe(first + 2);
});
