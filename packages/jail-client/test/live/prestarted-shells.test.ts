import { readFileSync } from "node:fs";
import { descendants, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COLD_SHELLS, SHELLS } from "../support/bash-programs.ts";
import { comparePrestarted, openPrestarted, runPrestarted } from "../support/prestarted.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: false });
}, 90_000);
afterAll(() => jaild.stop());

describe("a script that starts in a pre-started Bash behaves as in a new one", () => {
  it.each(Object.entries(SHELLS))("%s", async (_name, job) => {
    const { cold, warm, startedWarm } = await comparePrestarted(jaild, job);
    expect(warm).toEqual(cold);
    expect(startedWarm).toBe(true);
  });
});

describe("what a pre-started Bash cannot be starts cold by itself", () => {
  it.each(Object.entries(COLD_SHELLS))("%s", async (_name, job) => {
    const { cold, warm, startedWarm } = await comparePrestarted(jaild, job);
    expect(warm).toEqual(cold);
    expect(startedWarm).toBe(false);
  });
});

describe("a pre-started Bash", () => {
  it("has its confinement and nothing of a program, and shows in no variable how it was stopped", async () => {
    const run = await openPrestarted(jaild, "bash", true);
    const program = jaild.keepers.flatMap((pid) => descendants(pid)).find((pid) => comm(pid) === "bash") ?? 0;
    expect(readFileSync(`/proc/${program}/environ`, "utf8")).not.toContain("LD_");
    const status = readFileSync(`/proc/${program}/status`, "utf8");
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    expect(status).toMatch(/^CapBnd:\t0+$/m);
    run.close();
    await until(() => comm(program) === undefined, "it is gone with its jail");
  });

  it("is another process for each program", async () => {
    const job = {
      language: "bash",
      files: { "script.sh": "echo $(<seen); echo x >seen; echo $RANDOM$SRANDOM" },
    } as const;
    const [first, second] = [await runPrestarted(jaild, true, job), await runPrestarted(jaild, true, job)];
    expect(first.err + second.err).toMatch(/seen: No such file.*seen: No such file/s);
    expect(first.out).not.toBe(second.out);
  });
});

function comm(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return undefined;
  }
}
