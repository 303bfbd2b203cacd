import { TOOL_SCENARIOS } from "@svc/tools/bench/programmatic/scenarios";
import type { Measured } from "@svc/tools/bench/result";
import { SCENARIOS } from "@svc/tools/bench/scenarios";
import { asMarkdown, asText } from "@svc/tools/bench/table";
import { tablesOf } from "@svc/tools/bench/tables";
import { describe, expect, it } from "vitest";
import { around, NOTHING, resultOf } from "./support.ts";

const tableOf = (measured: Partial<Measured>, title: string) =>
  tablesOf(resultOf({ warm: { ...NOTHING, ...measured } })).find((table) => table.title === title);

describe("tables", () => {
  it("compare a scenario with its bare command", () => {
    const measured = { bare: { python: around(10) }, scenarios: { "hello-python": around(20) } };
    const [row] = tableOf(measured, "One request at a time (warm)")?.rows ?? [];
    expect(row).toEqual([
      "hello-python",
      "print(1)",
      "41",
      "20.0",
      "21.8",
      "22.0",
      "2.00 x python, +10.0 ms",
    ]);
  });

  it("compare a kind in between all others with what was there too", () => {
    const mixed = {
      bare: { python: around(10) },
      scenarios: { "hello-python": around(20), "file-out": around(30), "calls-1": around(50) },
    };
    const alone = { bare: { python: around(5) }, scenarios: {}, helloBesideTools: around(5) };
    const table = tableOf({ ...alone, mixed }, "Each kind in between all others (warm)");
    expect(table?.rows).toEqual([
      ["hello-python", "41", "20.0", "21.8", "22.0", "2.00 x python, +10.0 ms"],
      ["file-out", "41", "30.0", "32.7", "33.0", ""],
      ["calls-1", "41", "50.0", "54.5", "55.0", "2.50 x hello-python"],
    ]);
  });

  it("tell how the first requests fell", () => {
    const afterStart = [{ first: 1, last: 20, p50: 15.04 }];
    const table = tableOf({ afterStart }, "Requests after the start (warm)");
    expect(table?.rows).toEqual([["1 to 20", "15.0"]]);
  });

  it("have a part for each mode, and none for what was not measured", () => {
    const scenarios = { pandas: around(20) };
    const modes = { warm: { ...NOTHING, scenarios }, cold: { ...NOTHING, scenarios } };
    expect(tablesOf(resultOf(modes)).map(({ title }) => title)).toEqual([
      "One request at a time (warm)",
      "One request at a time (cold)",
    ]);
  });

  it("add memory up, idle and after the load", () => {
    const memory = {
      idleMib: { api: 80, redis: 5 },
      afterLoadMib: { api: 90, redis: 6 },
      running: [{ programs: 1, mib: 100 }],
      perProgramMib: 4.5,
    };
    const table = tableOf({ memory }, "Memory when idle (warm)");
    if (table === undefined) throw new Error("there is no table");
    expect(asText(table)).toContain(
      "  component  MiB  MiB after load\n  api         80              90\n  redis        5               6\n  total       85              96\n",
    );
    expect(asMarkdown(table)).toContain("| --- | ---: | ---: |\n| api | 80 | 90 |");
    expect(tableOf({ memory }, "Memory of programs (warm)")?.note).toContain("adds 4.5 MiB");
  });

  it("hold the last answer of a burst against the ideal", () => {
    const burst = {
      requests: 100,
      last: around(700),
      againstIdeal: around(1.1),
      answersMs: [],
      idealMs: 600,
      errors: 0,
    };
    expect(tableOf({ burst }, "Burst (warm)")?.rows).toEqual([["100", "41", "700", "1.10 x", "1.21 x", "0"]]);
  });

  it("compare the file path with the bare server", () => {
    const row = {
      name: "upload 20 MiB",
      mib: 20,
      ms: around(100),
      bareMs: around(80),
      cpuPerMib: 3,
      bareCpuPerMib: 2,
    };
    expect(tableOf({ files: [row] }, "File path (warm)")?.rows).toEqual([
      ["upload 20 MiB", "41", "200", "250", "0.80", "3.00", "2.00"],
    ]);
  });
});

describe("scenarios", () => {
  it("have names of their own and shares that leave samples", () => {
    const every = [...SCENARIOS, ...TOOL_SCENARIOS];
    expect(new Set(every.map(({ name }) => name)).size).toBe(every.length);
    for (const { share, coldShare = 1 } of every) {
      for (const each of [share, coldShare]) expect(each > 0 && each <= 1).toBe(true);
    }
  });
});

describe("programs with tools", () => {
  const cpuOf = (name: string, total: number) => ({
    name,
    requests: 10,
    components: {},
    total,
    parts: [total],
  });
  const calls: Partial<Measured> = {
    scenarios: {
      "hello-python": around(20),
      "calls-1": around(40),
      "calls-5": around(80),
      "calls-20": around(230),
    },
    cpu: [cpuOf("hello-python", 10), cpuOf("calls-1", 15), cpuOf("calls-5", 27), cpuOf("calls-20", 72)],
    paused: [
      { paused: 0, totalMib: 400, perProgramMib: 0, idleCpuMsPerSecond: 5, hello: around(20) },
      {
        paused: 32,
        totalMib: 560,
        perProgramMib: 5,
        idleCpuMsPerSecond: 5,
        hello: around(21),
        resume: around(30),
      },
    ],
  };
  const rowsOf = (title: string) => tableOf(calls, `${title} (warm)`)?.rows;

  it("are compared with hello-python", () => {
    expect(rowsOf("Programs with tools")?.[1]?.slice(2)).toEqual([
      ...["41", "80.0", "87.2", "4.00 x", "27.0", "2.70 x"],
    ]);
  });

  it("are compared with the hello-python that took turns with them, where there is one", () => {
    const table = tableOf({ ...calls, helloBesideTools: around(16) }, "Programs with tools (warm)");
    expect(table?.rows[1]?.slice(5)).toEqual(["5.00 x", "27.0", "2.70 x"]);
    expect(table?.note).toContain("(16.0 ms)");
  });

  it("say what one more call costs", () => {
    expect(rowsOf("Cost of one more call")).toEqual([
      ["5", "80.0", "10.0", "27.0", "3.0"],
      ["20", "230", "10.0", "72.0", "3.0"],
    ]);
  });

  it("say what paused ones cost", () => {
    expect(rowsOf("Paused programs")?.map((row) => row.slice(0, 4))).toEqual([
      ["0", "400", "", "5.0"],
      ["32", "560", "5.00", "5.0"],
    ]);
  });
});
