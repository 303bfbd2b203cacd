/** `./svc doctor`: what it finds with and without a running copy. */
import { execFile } from "node:child_process";
import { chmodSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Finding } from "@svc/cli/doctor/finding";
import { ROOT } from "@svc/cli/instance";
import { startSystem } from "@svc/test-kit/system/system";
import { afterAll, describe, expect, it } from "vitest";
import { privateFolder, svc } from "./support/svc.ts";

const { environment, instance, remove } = await privateFolder();
afterAll(remove);
symlinkSync(realpathSync(join(instance.packagesDir, "current")), instance.image);

async function findings(
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ code: number; found: Finding[] }> {
  const { code, stdout } = await svc(["doctor", "--json"], env);
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Finding[] };
  expect(ok).toBe(code === 0);
  return { code, found: checks };
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

  /** ./svc as the last part of a command that takes something away from it. */
  const within = (around: readonly string[], args: readonly string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const [file = "", ...rest] = [...around, join(ROOT, "svc"), ...args];
      execFile(file, rest, { env: { ...process.env, ...environment } }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      );
    });
  const READ_ONLY_SETTINGS = [
    ...["unshare", "--mount", "sh", "-ec"],
    'mount -o bind,ro /proc/sys /proc/sys; exec "$0" "$@"',
  ];

  it.each([
    ["open files", ["prlimit", "--nofile=512:512"], "ulimits", /open files: 512/],
    ["user namespaces", READ_ONLY_SETTINGS, "jail", /^user-namespace does not work/],
  ])("fails where there are no %s, with the fix", async (_what, around, subject, note) => {
    const { code, stdout } = await within(around, ["doctor", "--json"]);
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Finding[] };
    const failed = checks.filter(({ grade }) => grade === "fail");
    expect(ok).toBe(false);
    expect(failed).toMatchObject([
      { subject, note: expect.stringMatching(note), fix: expect.stringMatching(/ulimit|sysctl/) },
    ]);
    expect(code).toBe(1);
  });

  it("leaves the data folder and its settings to root where another user asks", async () => {
    chmodSync(instance.dataDir, 0o711);
    const file = join(instance.dataDir, "svc.env");
    writeFileSync(file, "SERVICE_HOST=0.0.0.0\n", { mode: 0o600 });
    const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    const { stdout } = await within(nobody, ["doctor", "--json"]);
    rmSync(file);
    const subjects = ["data folder", "settings", "address"];
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    const found = checks.filter(({ subject }) => subjects.includes(subject));
    const fix = "Run: sudo ./svc doctor";
    expect(found).toEqual([
      { grade: "warn", subject: "settings", note: `${file} can only be read by its owner`, fix },
      { grade: "warn", subject: "data folder", note: "can only be tried by root", fix },
    ]);
  });

  it("fails where a component cannot have a user of its own, and leaves nothing behind", async () => {
    const path = join(instance.dataDir, "ca.pem");
    writeFileSync(path, "", { mode: 0o600 });
    const { code, found } = await findings({ ...environment, REDIS_TLS_CA: path });
    expect(found.filter(({ grade }) => grade === "fail")).toMatchObject([
      { subject: "users", fix: expect.stringContaining(path) },
    ]);
    expect(code).toBe(1);
    rmSync(path);
    const allowed = await findings(environment);
    expect(allowed.found.find(({ subject }) => subject === "users")?.grade).toBe("ok");
    expect(readdirSync(instance.dataDir)).toEqual(["image"]);
  });

  it("fails for slots that do not fit into the memory, and warns of packages that are not in the manifest", async () => {
    const { code, found } = await findings({ ...environment, SANDBOX_WORKSPACE_MAX_BYTES: "1000gb" });
    expect(found.filter(({ grade }) => grade === "fail")).toMatchObject([{ subject: "capacity" }]);
    expect(code).toBe(1);
    for (const subject of ["image packages", "open files", "processor", "core dumps"]) {
      expect(found.map((finding) => finding.subject)).toContain(subject);
    }
  });

  it("tells the mode, and which settings ./svc up would refuse", async () => {
    const { code, found } = await findings({ ...environment, LOCAL_MODE: "true", SVC_JWT_KID: "k" });
    expect(code).toBe(0);
    const noAuthentication = { grade: "ok", note: "no authentication, this machine only" };
    expect(found.find(({ subject }) => subject === "settings")).toMatchObject(noAuthentication);
    const refused = await findings({ ...environment, SERVICE_HOST: "0.0.0.0", S3_ACCESS_KEY: "x" });
    const failed = refused.found.filter(({ grade }) => grade === "fail");
    expect(failed.map(({ subject, note }) => [subject, note.split(" ", 1)[0]])).toEqual([
      ["settings", "SERVICE_HOST=0.0.0.0"],
      ["settings", "S3_ACCESS_KEY"],
    ]);
  });

  it("is not needed to be kept from an unsafe start: ./svc up ends and says why", async () => {
    const { code, stderr, stdout } = await within(READ_ONLY_SETTINGS, ["up", "--no-example"]);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/user-namespace does not work on this machine/);
    expect(stdout).not.toMatch(/^Ready: /m);
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
      expect(found.find(({ subject }) => subject === "users")?.note).toBe("every process has one of its own");
      expect(found.find(({ subject }) => subject === "limits")?.note).toMatch(
        /^all jails together: \d+ bytes, \d+ processes$/,
      );
      expect(found.find(({ subject }) => subject === "proc entries")?.grade).toBe("ok");
      expect(code).toBe(0);
    } finally {
      expect(await system.stop()).toEqual([]);
    }
  });
});
