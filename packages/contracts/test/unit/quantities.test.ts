import { byteSize, duration } from "@svc/contracts";
import { describe, expect, it } from "vitest";

describe("limits as people read them", () => {
  it.each([
    [1, "1 ms"],
    [999, "999 ms"],
    [1000, "1 s"],
    [1500, "1.5 s"],
    [60_000, "60 s"],
    [300_001, "300.001 s"],
  ])("%i ms are %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it.each([
    [0, "0 bytes"],
    [1, "1 byte"],
    [1023, "1,023 bytes"],
    [1024, "1 KiB"],
    [1025, "1,025 bytes"],
    [65_536, "64 KiB"],
    [10_000_000, "10,000,000 bytes"],
    [512 * 2 ** 20, "512 MiB"],
    [1536 * 2 ** 20, "1,536 MiB"],
    [2 ** 31, "2 GiB"],
  ])("%i bytes are %s, without loss", (bytes, text) => {
    expect(byteSize(bytes)).toBe(text);
  });
});
