import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { COMPONENT_IDS, resolveInstance } from "../../src/instance.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-instance-"));
afterAll(() => rmSync(folder, { recursive: true }));

const none = { "data-dir": undefined, "port-offset": undefined };
const at = (dir: string) => ({ ...none, "data-dir": join(folder, dir) });

describe("resolveInstance", () => {
  it("uses the documented ports and the data folder of the repository", () => {
    const instance = resolveInstance(none, {});
    expect(instance.ports).toEqual({
      api: 3112,
      worker: 3113,
      runner: 2000,
      "file-server": 3000,
      "tool-call-server": 3033,
      "egress-gateway": 3190,
    });
    expect(instance.dataDir).toMatch(/\/data$/);
    expect(instance.url).toBe("http://127.0.0.1:3112");
  });

  it("adds the offset to every port, also to ports of the environment", () => {
    const { ports } = resolveInstance({ ...none, "port-offset": "1000" }, { SERVICE_PORT: "5000" });
    expect(ports.api).toBe(6000);
    expect(ports["egress-gateway"]).toBe(4190);
  });

  it("gives two data folders different cgroups and user ids that do not overlap", () => {
    const one = resolveInstance(at("a"), {});
    const two = resolveInstance(at("b"), {});
    expect(one.cgroup).toMatch(/^svc-[0-9a-f]{8}$/);
    expect(one.cgroup).not.toBe(two.cgroup);
    expect(Math.abs(one.jobUidBase - two.jobUidBase)).toBeGreaterThanOrEqual(1024 + COMPONENT_IDS);
  });

  it("knows a folder again through a link", () => {
    mkdirSync(join(folder, "real"));
    symlinkSync(join(folder, "real"), join(folder, "link"));
    expect(resolveInstance(at("link"), {})).toEqual(resolveInstance(at("real"), {}));
    expect(resolveInstance(at("link/new"), {})).toEqual(resolveInstance(at("real/new"), {}));
  });

  it.each([
    [{ SERVICE_PORT: "http" }, /SERVICE_PORT is not a port/],
    [{ SERVICE_PORT: "70000" }, /SERVICE_PORT is not a port/],
    [{ SERVICE_PORT: "3113" }, /SERVICE_PORT and WORKER_HEALTH_PORT are both port 3113/],
    [{ SANDBOX_JOB_UID_BASE: "0" }, /SANDBOX_JOB_UID_BASE must be/],
  ])("refuses %j", (env, message) => {
    expect(() => resolveInstance(none, env)).toThrow(message);
  });

  it.each([
    [undefined, "http://127.0.0.1:3112"],
    ["0.0.0.0", "http://127.0.0.1:3112"],
    ["::", "http://127.0.0.1:3112"],
    ["::1", "http://[::1]:3112"],
    ["10.0.0.7", "http://10.0.0.7:3112"],
  ])("reaches an API that listens on %s at %s", (SERVICE_HOST, url) => {
    expect(resolveInstance(none, { SERVICE_HOST }).url).toBe(url);
  });

  it("refuses a data folder whose sockets the kernel could not bind", () => {
    expect(() => resolveInstance({ ...none, "data-dir": `/tmp/${"x".repeat(120)}` }, {})).toThrow(/too long/);
  });
});
