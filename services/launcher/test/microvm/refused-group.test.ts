/** A machine whose control group does not take it: nothing would bound it, so it does not stay. */
import { existsSync } from "node:fs";
import { ACCELERATOR, buildGuest, guestProcesses, IMAGE, UID_BASE } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { beforeAll, expect, test } from "vitest";
import { qemu } from "../../src/monitor/qemu.ts";

const USER = { uid: UID_BASE + 7, gid: UID_BASE + 7 };
const GONE_MS = 10_000;

beforeAll(buildGuest);

test("its process is ended, and its start fails", async () => {
  const added: number[] = [];
  const group = {
    add: (pid: number) => {
      added.push(pid);
      throw new Error("no space left in the group");
    },
    remove: () => undefined,
  };
  const machine = { image: IMAGE, verified: false, ramMib: 512, vcpus: 1, logLevel: 1, user: USER, group };
  expect(() => qemu(ACCELERATOR).boot({ ...machine, onConsole: () => undefined })).toThrow("no space left");
  expect(added).toHaveLength(1);
  const left = () => [
    ...guestProcesses().filter(({ uid }) => uid === USER.uid),
    ...(existsSync(`/proc/${added[0]}/exe`) ? added : []),
  ];
  await until(() => left().length === 0, GONE_MS, left);
});
