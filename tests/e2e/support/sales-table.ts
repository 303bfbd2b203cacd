/** A data file as people have them: a CSV with a header, Windows line ends and values that repeat. The same every time. */
export interface SalesTable {
  bytes: Buffer<ArrayBuffer>;
  /** Sum of the units of each region, for comparison with what a program finds. */
  units: Record<string, number>;
}

const REGIONS = ["north", "south", "east", "west", "a region with a long name"] as const;

export function salesTable(rows: number): SalesTable {
  const units: Record<string, number> = {};
  const lines = ["region,units,price,day,comment"];
  for (let row = 0; row < rows; row++) {
    const region = REGIONS[(row * 7) % REGIONS.length] as string;
    const count = (row * 31) % 97;
    units[region] = (units[region] ?? 0) + count;
    lines.push(
      `${region},${count},${((row % 1000) / 8).toFixed(3)},2026-01-${String((row % 28) + 1).padStart(2, "0")},"order ${row}, Zürich"`,
    );
  }
  return { bytes: Buffer.from(`${lines.join("\r\n")}\r\n`), units };
}
