import { describe, expect, it } from "vitest";
import { groupLimits, guestLimits, procEntries, userFinding } from "../../src/doctor/copy.ts";
import { corePattern, fileNumbers, speculation } from "../../src/doctor/host.ts";
import { packagesFinding } from "../../src/doctor/image.ts";
import { closedFolders } from "../../src/supervisor/view.ts";

describe("open files of all runs", () => {
  it("are fewer than the machine has, or a line says how to allow them", () => {
    expect(fileNumbers("9223372036854775807\n", 5_242_880)).toMatchObject({ grade: "ok" });
    expect(fileNumbers("5242880\n", 5_242_880)).toMatchObject({
      grade: "warn",
      note: "5242880 open files on this machine, runs may have 5242880",
      fix: expect.stringContaining("sysctl -w fs.file-max=10485760"),
    });
    expect(fileNumbers(undefined, 1).grade).toBe("warn");
  });
});

describe("for information", () => {
  it("it is told where core dumps go", () => {
    expect(corePattern("core\n")).toMatchObject({
      grade: "ok",
      note: expect.stringContaining("files (core)"),
    });
    expect(corePattern("|/usr/lib/systemd/systemd-coredump %P\n").note).toContain(
      "the program /usr/lib/systemd",
    );
  });

  it("it is told what programs can learn of each other through the processor", () => {
    const safe = { meltdown: "Not affected\n", spectre_v1: "Mitigation: usercopy\n" };
    expect(speculation("0\n", safe)).toEqual({
      grade: "ok",
      subject: "processor",
      note: "no SMT; all known flaws mitigated",
    });
    const open = speculation("1\n", {
      ...safe,
      spec_store_bypass: "Vulnerable\n",
      mds: "Mitigation: Clear CPU buffers; SMT vulnerable\n",
    });
    expect(open.note).toBe("programs share processor cores (SMT); not mitigated: spec_store_bypass, mds");
    expect(open.fix).toContain("echo off >/sys/devices/system/cpu/smt/control");
  });
});

describe("packages of the image", () => {
  const manifest = "a 1 all aa\nb 2 amd64 bb\n";
  it("match the manifest, or each that does not is counted", () => {
    expect(packagesFinding("a 1 all aa\n", manifest).grade).toBe("ok");
    expect(packagesFinding("a 1 all ff\nb 3 amd64 bb\n", manifest)).toMatchObject({
      grade: "warn",
      note: "image differs from the repository's manifest: 2 packages (a 1, b 3)",
      fix: expect.stringContaining("SVC_IMAGE_STRICT"),
    });
    expect(packagesFinding("", manifest).grade).toBe("warn");
    expect(packagesFinding("a 1 all aa\n", "").grade).toBe("warn");
  });
});

describe("the running copy", () => {
  it("has components with users of their own, or a line says that they are root", () => {
    expect(userFinding({ unprivileged: true }).grade).toBe("ok");
    expect(userFinding({ unprivileged: false })).toMatchObject({ grade: "warn", fix: expect.any(String) });
  });

  it.each([
    [{ memory: "1000", pids: "99" }, "ok"],
    [{ memory: "max", pids: "99" }, "warn"],
    [{ memory: "9223372036854771712", pids: "99" }, "warn"],
    [{ memory: "1000", pids: "max" }, "warn"],
    [{}, "warn"],
  ])("limits all jails together: %j is %s", (limits, grade) => {
    expect(groupLimits(limits).grade).toBe(grade);
  });

  it("limits each microVM, or a line names what one is without", () => {
    const limited = { memory: "1000", pids: "99" };
    expect(guestLimits([])).toMatchObject({ grade: "ok", note: "no microVM runs at this moment" });
    expect(guestLimits([limited, limited])).toMatchObject({
      grade: "ok",
      note: "each microVM: 1000 bytes, 99 processes",
    });
    expect(guestLimits([limited, { memory: "max" }, {}])).toMatchObject({
      grade: "warn",
      note: "none for a microVM: memory, processes",
    });
  });

  it("names what a module has added to /proc since", () => {
    expect(procEntries(["cpuinfo", "net"], ["cpuinfo", "net"]).grade).toBe("ok");
    expect(procEntries(["cpuinfo", "net"], ["cpuinfo"]).grade).toBe("ok");
    expect(procEntries(["cpuinfo"], ["cpuinfo", "driver-of-a-card"])).toMatchObject({
      grade: "warn",
      note: expect.stringContaining("driver-of-a-card"),
      fix: expect.stringContaining("./svc down"),
    });
  });
});

describe("folders that are closed to the components' users", () => {
  const open = new Set(["/", "/srv", "/srv/a", "/home", "/root/x"]);
  const closed = (...needed: string[]) => [...closedFolders(needed, (folder) => open.has(folder))];
  it("are found at the top, each with all that is needed below it", () => {
    expect(closed("/srv/a/b")).toEqual([]);
    expect(closed("/root/x/code", "/srv/a/b", "/root/data", "/home/ann/svc")).toEqual([
      ["/root", ["/root/x/code", "/root/data"]],
      ["/home/ann", ["/home/ann/svc"]],
    ]);
  });

  it("are those above: what is needed itself has rights of its own", () => {
    expect(closed("/srv/private")).toEqual([]);
  });
});
