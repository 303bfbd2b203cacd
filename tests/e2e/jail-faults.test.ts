/** A jail that cannot be made, as callers of the public API see it. */
import { chmodSync, lchownSync, renameSync, statSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { buildFaulty, Faults } from "@svc/test-kit/jail/faults";
import { IMAGE, type Jaild } from "@svc/test-kit/jail/jaild";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

let system: System;
let faults: Faults;
let jaild: Jaild;
let api: Api;

beforeAll(async () => {
  buildFaulty();
  // A pre-started interpreter is a program, too, and would wait in a jail without faults.
  system = await startSystem({ env: { ...OPEN_LIMITS, SANDBOX_WARM_START: "off" } });
  api = new Api(system.url);
  faults = Faults.plan({ role: "program", only: "mmap64", error: "ENOMEM" });
  const socket = system.instance.jailSocket;
  const { uid } = statSync(socket);
  jaild = await faults.start({ slots: 2, args: ["--socket-uid", `${uid}`] });
  // The runner's way to its jails leads to those with faults from now on.
  chmodSync(dirname(jaild.socket), 0o711);
  renameSync(socket, `${socket}.own`);
  symlinkSync(jaild.socket, socket);
  lchownSync(socket, uid, 0);
});

afterAll(async () => {
  const socket = system?.instance.jailSocket;
  if (jaild !== undefined && socket !== undefined) renameSync(`${socket}.own`, socket);
  await jaild?.stop();
  faults?.remove();
  expect(await system?.stop()).toEqual([]);
});

const run = (code: string): Promise<Answer> => api.tryExec({ lang: "bash", code });

test("it is a 503 that says nothing of the machine, the program did not run, and the next one does", async () => {
  const answer = await run("echo executed > trace.txt; echo executed");
  const { status, text } = answer;
  expect(status, text).toBe(503);
  const { error, message } = answer.refusal;
  expect(error).toBe("sandbox_setup_failed");
  expect(message).not.toMatch(/\/|errno|ENOMEM|slot|mmap/);
  for (const secret of ["executed", IMAGE, system.instance.dataDir]) expect(text).not.toContain(secret);
  expect(faults.taken).toBeGreaterThan(2);
  for (let number = 0; number < faults.taken; number++)
    expect(faults.ticket(number)).toMatchObject({ executed: false });

  faults.write({ role: "program", tickets: 0 });
  // The jails that were ready before.
  for (let count = 0; count < 2; count++) await run("true");
  expect((await run("echo works")).ok()).toMatchObject({ stdout: "works\n" });
});
