/** `./svc doctor`: what it finds with and without a running copy. */
import { createServer } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import type { Finding } from "../../cli/src/doctor/finding.ts";
import { privateFolder, svc } from "./support/svc.ts";
import { startSystem } from "./support/system.ts";

const { environment, instance, remove } = await privateFolder();
afterAll(remove);

async function findings(
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ code: number; found: Finding[] }> {
  const { code, stdout } = await svc(["doctor", "--json"], env);
  return { code, found: JSON.parse(stdout) as Finding[] };
}

describe("./svc doctor", () => {
  it("finds this machine fit, feature by feature of the jail", async () => {
    const { code, found } = await findings(environment);
    expect(found.filter(({ grade }) => grade === "fail")).toEqual([]);
    expect(code).toBe(0);
    const features = found.filter(({ subject }) => subject === "jail").map(({ note }) => note.split(" ")[0]);
    expect(features).toEqual(expect.arrayContaining(["seccomp", "cgroups", "pidfd", "openat2"]));
    expect(found.find(({ subject }) => subject === "image")?.note).toMatch(/python 3\./);
  });

  it("prints one line per check", async () => {
    const { code, stdout } = await svc(["doctor"], environment);
    expect(code).toBe(0);
    for (const line of stdout.trim().split("\n").slice(0, -2))
      expect(line).toMatch(/^(ok|warn|fail) {2,}\S|^ +fix: /);
    expect(stdout).toMatch(/\nFit to run\.\n$/);
  });

  it("fails for a taken port, with its owner and the fix", async () => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(instance.ports.runner, "127.0.0.1", resolve));
    try {
      const { code, found } = await findings(environment);
      expect(code).toBe(1);
      const [problem] = found.filter(({ grade }) => grade === "fail");
      expect(problem).toMatchObject({
        subject: "ports",
        note: expect.stringContaining(`${instance.ports.runner} (runner) is taken by pid ${process.pid}`),
        fix: expect.stringContaining("--port-offset"),
      });
    } finally {
      await new Promise((resolve) => squatter.close(resolve));
    }
  });

  it("reports every component of a running copy", async () => {
    const system = await startSystem();
    try {
      const { code, found } = await findings(system.environment);
      const healthy = found.filter(({ note }) => note === "healthy").map(({ subject }) => subject);
      expect(healthy.sort()).toEqual(
        [
          "api",
          "egress-gateway",
          "file-server",
          "jaild",
          "redis",
          "runner",
          "tool-call-server",
          "worker",
        ].sort(),
      );
      expect(code).toBe(0);
    } finally {
      expect(await system.stop()).toEqual([]);
    }
  });
});
