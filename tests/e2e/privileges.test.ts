/**
 * Every process of a running copy has the rights of its row in support/privileges.ts, and no others. The copy is started
 * by somebody who has a descriptor open, below folders that are closed to other users.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { Api } from "@svc/test-kit/system/api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kindsOf, PRIVILEGES } from "./support/privileges.ts";
import {
  capabilitiesOfRoot,
  expectedIds,
  type ProcessState,
  processStates,
} from "./support/process-state.ts";

/** Root may lower the score of a process only with CAP_SYS_RESOURCE, which containers often lack. */
const MAY_LOWER = ((capabilitiesOfRoot() >> 24n) & 1n) === 1n;

const SETTLE_MS = 30_000;

/** Runs ./svc with a descriptor that nobody closed, as seen at another place. */
const ELSEWHERE = `
mount --bind "$1" "$2"
place=$2
shift 3
exec 251</etc/hostname
exec "$place/svc" "$@"
`;

/** Of the capabilities in a row, those that root has here. */
const held = (capabilities: string): string =>
  capabilities === "all" ? capabilities : (BigInt(`0x${capabilities}`) & capabilitiesOfRoot()).toString(16);

/** In what a process differs from its row. */
function differences(state: ProcessState, system: System): string[] {
  const row = PRIVILEGES[state.kind];
  const ids = expectedIds(state.kind, system);
  const found = [
    ...state.uids.filter((uid) => !ids.uid(uid)).map((uid) => `uid ${uid}`),
    ...state.gids.filter((gid) => !ids.gid(gid)).map((gid) => `gid ${gid}`),
    ...(row.user === "root" ? [] : state.groups.map((group) => `group ${group}`)),
    ...state.descriptors
      .filter((kind) => !row.descriptors.includes(kind))
      .map((kind) => `descriptor ${kind}`),
  ];
  for (const key of ["noNewPrivileges", "filtered"] as const) {
    if (state[key] !== row[key]) found.push(`${key} ${state[key]}`);
  }
  for (const key of ["effective", "bounding"] as const) {
    if (state[key] !== held(row[key])) found.push(`${key} ${state[key]}`);
  }
  const score = row.oomScore ?? state.oomScore;
  if (state.oomScore !== (MAY_LOWER ? score : Math.max(score, 0))) found.push(`score ${state.oomScore}`);
  if (state.permitted !== held(row.effective)) found.push(`permitted ${state.permitted}`);
  return found.map((what) => `${state.kind}: ${what}`);
}

/** A jail that is just being made has not given up its rights yet. */
async function untilAsInTable(system: System): Promise<void> {
  const look = () => [...new Set(processStates(system).flatMap((state) => differences(state, system)))];
  await expect.poll(look, { timeout: SETTLE_MS, interval: 300 }).toEqual([]);
}

const kindsIn = (system: System) => new Set(processStates(system).map(({ kind }) => kind));

describe.each(["combined", "separate"] as const)("a copy below closed folders, %s", (topology) => {
  let closed: string;
  let system: System;
  beforeAll(async () => {
    closed = realpathSync(mkdtempSync(join(tmpdir(), "svc-closed-")));
    mkdirSync(join(closed, "svc"));
    mkdirSync(join(closed, "data"));
    chmodSync(closed, 0o700);
    system = await startSystem({
      env: { SVC_DATA_DIR: join(closed, "data"), SVC_TOPOLOGY: topology },
      through: [
        ...["/usr/bin/unshare", "--mount", "--propagation", "private"],
        ...["/bin/bash", "-ec", ELSEWHERE, "bash", ROOT, join(closed, "svc")],
      ],
    });
  });
  afterAll(async () => {
    const left = await system?.stop();
    rmSync(closed, { recursive: true });
    expect(left).toEqual([]);
  });

  test("its programs run and its files are kept", async () => {
    const api = new Api(system.url);
    const { stdout, files } = await api.exec({
      lang: "py",
      code: "print(6 * 7)\nopen('out.txt', 'w').write('kept')",
    });
    expect(stdout).toBe("42\n");
    expect(files).toHaveLength(1);
  });

  test("every process has the rights of its row, and no other", async () => {
    await untilAsInTable(system);
    expect([...kindsIn(system)].sort()).toEqual(kindsOf(topology).sort());
  });

  test("a component that is started again has them too", async () => {
    const pid = system.pid("file-server");
    process.kill(pid, "SIGKILL");
    await expect.poll(() => runsAgain(system, pid), { timeout: 20_000 }).toBe(true);
    await untilAsInTable(system);
  });

  test("nothing is mounted for others, and the folder stays closed", () => {
    expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(closed);
  });
});

/** True when the file server runs under another pid. */
function runsAgain(system: System, before: number): boolean {
  try {
    return system.pid("file-server") !== before;
  } catch {
    return false;
  }
}

describe("a copy in open folders", () => {
  test("has the same rights, and no mount namespace for its components", async () => {
    const system = await startSystem();
    try {
      await untilAsInTable(system);
      const own = readlinkSync("/proc/self/ns/mnt");
      expect(readlinkSync(`/proc/${system.pid("api")}/ns/mnt`)).toBe(own);
    } finally {
      expect(await system.stop()).toEqual([]);
    }
  });
});
