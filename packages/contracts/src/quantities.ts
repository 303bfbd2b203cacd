/** Formats limits and amounts for people, without rounding. Pure. */

/** `60 s`, `1.5 s`, `300 ms`. */
export function duration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}

/** A whole number of binary units when that is exact: `512 MiB`, `64 KiB`. Otherwise bytes: `10,000,000 bytes`. */
export function byteSize(bytes: number): string {
  for (const [unit, factor] of UNITS) {
    if (bytes >= factor && bytes % factor === 0) return `${grouped(bytes / factor)} ${unit}`;
  }
  return `${grouped(bytes)} ${bytes === 1 ? "byte" : "bytes"}`;
}

const UNITS = [
  ["GiB", 2 ** 30],
  ["MiB", 2 ** 20],
  ["KiB", 2 ** 10],
] as const;

export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
