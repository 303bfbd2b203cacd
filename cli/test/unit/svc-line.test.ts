/** Lines of ./svc that a person pastes mean the copy that the command line was about. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOT, resolveInstance } from "../../src/instance.ts";
import { findCopy } from "../../src/running-copy.ts";
import { meanCopy, startAgain, svcLine } from "../../src/svc-line.ts";
import { identify } from "../../src/system/process.ts";

afterEach(() => meanCopy({}));

describe("a line", () => {
  it("has the options that were given, quoted where a shell needs it", () => {
    meanCopy({ "data-dir": "/srv/my data", "port-offset": "100", settings: "other.env" });
    const options = "--data-dir '/srv/my data' --port-offset 100 --settings other.env";
    expect(svcLine("up -d")).toBe(`./svc up -d ${options}`);
    expect(startAgain()).toBe(`./svc down ${options}, then ./svc up ${options}`);
  });

  it("has none where the copy is meant without", () => {
    expect(svcLine("up -d")).toBe("./svc up -d");
    meanCopy({ "data-dir": join(ROOT, "data") });
    expect(svcLine("up -d")).toBe("./svc up -d");
    meanCopy({ "data-dir": "/srv/two" }, { SVC_DATA_DIR: "/srv/two" });
    expect(svcLine("up -d")).toBe("./svc up -d");
    meanCopy({ "data-dir": join(ROOT, "data") }, { SVC_DATA_DIR: "/srv/two" });
    expect(svcLine("up -d")).toBe(`./svc up -d --data-dir ${join(ROOT, "data")}`);
  });
});

describe("of a running copy", () => {
  let folder: string;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-line-")));
    mkdirSync(join(folder, "run"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const values = () => ({ "data-dir": folder, "port-offset": undefined, settings: undefined });
  const runs = (ports: Readonly<Record<string, number>>) => {
    const state = { version: 1, supervisor: identify(process.pid), ports };
    writeFileSync(join(folder, "run/state.json"), JSON.stringify(state));
    findCopy(values());
  };

  it("a line has the port offset with which it was started", () => {
    const { ports } = resolveInstance({ ...values(), "port-offset": "200" }, process.env);
    runs(ports);
    expect(svcLine("up")).toBe(`./svc up --data-dir ${folder} --port-offset 200`);
  });

  it("a line has no offset where it has none, or ports of its own", () => {
    const { ports } = resolveInstance(values(), process.env);
    meanCopy(values());
    for (const own of [ports, { ...ports, api: ports.api + 200 }, {}]) {
      runs(own);
      expect(svcLine("up")).toBe(`./svc up --data-dir ${folder}`);
    }
  });
});
