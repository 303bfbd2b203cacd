/** What all jails may use together, and who goes when memory is short. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { descendants, groupsNamed, isAlive } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, python, runJob, stage } from "@svc/test-kit/jail/run";
import { afterEach, expect, it } from "vitest";

const MIB = 1 << 20;
let jaild: Jaild;
afterEach(() => jaild.stop());

/** A control file of the group over all slots, in whichever hierarchy has it; of version 2 it is one below jaild's own. */
function ownFile(...names: string[]): string | undefined {
  const path = groupsNamed(jaild.group)
    .flatMap((group) => [join(group, "jails"), group])
    .flatMap((group) => names.map((name) => join(group, name)))
    .find((candidate) => existsSync(candidate));
  return path === undefined ? undefined : readFileSync(path, "utf8").trim();
}
const memoryLimit = () => ownFile("memory.max", "memory.limit_in_bytes");
const scoreOf = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
/** 0 when the kernel does not let this process, or jaild, lower a score. */
const mayLower = () =>
  (Number.parseInt(
    /^CapEff:\t(.*)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]?.slice(-8) ?? "",
    16,
  ) &
    (1 << 24)) !==
  0;

it("limits all jails together, and not at all unless it is asked to", async () => {
  jaild = await Jaild.start({ slots: 2, args: ["--memory-bytes", `${300 * MIB}`, "--pids", "300"] });
  expect(memoryLimit()).toBe(`${300 * MIB}`);
  expect(ownFile("pids.max")).toBe("300");
  await jaild.stop();
  jaild = await Jaild.start({ slots: 2 });
  expect(memoryLimit()).toMatch(/^(max|9223372036854771712)$/);
  expect(ownFile("pids.max")).toBe("max");
});

it("refuses limits that it could not keep", async () => {
  jaild = Jaild.launch({ args: ["--no-cgroups", "--memory-bytes", `${300 * MIB}`] });
  await expect(jaild.ready()).rejects.toThrow("need control groups");
  expect(jaild.exitCode).toBe(2);
});

it("ends programs, and neither keepers nor what comes after, when all jails together take too much", async () => {
  jaild = await Jaild.start({ slots: 2, ready: 2, args: ["--memory-bytes", `${200 * MIB}`] });
  await jaild.full();
  // Files in memory belong to no process: they go with the keeper of the run that made them.
  const filling = `import time
with open("f", "wb", 0) as file:
    for _ in range(100): file.write(bytes(1 << 20))
print("filled", flush=True)
time.sleep(60)`;
  const first = await stage(jaild, { argv: ["/usr/bin/python3", "-c", filling] });
  await first.start();
  const keepers = jaild.keepers;
  const second = await runJob(jaild, { argv: ["/usr/bin/python3", "-c", "x = b'1' * (300 << 20)"] });
  expect(second.end.cause).toBe("memory_limit");
  expect(keepers.filter(isAlive).length).toBeGreaterThan(0);
  expect(jaild.log).not.toContain("killed by signal");
  first.close();
  expect((await bash(jaild, "echo next")).out).toBe("next\n");
});

it("refuses processes beyond the number of all jails, and leaves the run alone", async () => {
  jaild = await Jaild.start({ slots: 1, args: ["--pids", "40"] });
  const code = `import json, os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(60)
        made += 1
except BlockingIOError: pass
print(json.dumps(made))`;
  const made = await python<number>(jaild, code);
  expect(made).toBeGreaterThan(20);
  expect(made).toBeLessThan(40);
  expect((await bash(jaild, "echo next")).out).toBe("next\n");
});

it("has programs go first and keepers last, and no program can change that", async () => {
  jaild = await Jaild.start({ slots: 1 });
  await jaild.full();
  const [keeper = 0] = jaild.keepers;
  const master = mayLower() ? Math.min(-500, scoreOf(process.pid)) : scoreOf(process.pid);
  expect([scoreOf(jaild.pid), scoreOf(keeper)]).toEqual([master, master]);
  expect(descendants(keeper).map(scoreOf)).toEqual([1000]);
  for (const zygote of jaild.zygotes) expect(scoreOf(zygote)).toBe(1000);
  const seen = await python<unknown[]>(
    jaild,
    `import json, os
def lower(name):
    try:
        with open(name, "w") as file: file.write("0")
        return "ok"
    except OSError as error: return type(error).__name__
def score(pid): return int(open(f"/proc/{pid}/oom_score_adj").read())
child = os.fork()
if child == 0: os.execv("/bin/sleep", ["sleep", "60"])
answers = {lower(f"/proc/{name}") for name in ("self/oom_score_adj", f"{child}/oom_score_adj", "1/oom_score_adj", "self/oom_adj")}
print(json.dumps([sorted(answers), score("self"), score(child)]))`,
  );
  expect(seen).toEqual([["OSError"], 1000, 1000]);
});
