import { Readers } from "@svc/object-store/s3/readers";
import { expect, test } from "vitest";

test("what waits for the readers of a key runs once, after the last of them", () => {
  const readers = new Readers();
  let runs = 0;
  const [first, second] = [readers.hold("a"), readers.hold("a")];
  const other = readers.hold("b");
  expect(readers.afterLast("a", () => runs++)).toBe(true);
  first();
  first();
  expect(runs).toBe(0);
  other();
  second();
  expect(runs).toBe(1);
  expect(readers.afterLast("a", () => runs++)).toBe(false);
  readers.hold("a")();
  expect(runs).toBe(1);
});
