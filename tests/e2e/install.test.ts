/** `./svc install` where systemd does not run, in a mount namespace whose folder of units is empty: nothing outside changes. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { afterAll, beforeAll, expect, test } from "vitest";
import { svc } from "./support/svc.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-install-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const UNIT = "/etc/systemd/system/svc.service";

/** Runs a script of commands with ./svc as $SVC; answers what it printed. */
function apart(script: string): Promise<string> {
  const hide =
    "mount -t tmpfs svc /etc/systemd/system; test ! -e /run/systemd/system || mount -t tmpfs svc /run/systemd";
  const env = { ...process.env, SVC: join(ROOT, "svc"), DATA: join(folder, "data"), UNIT };
  const words = [
    "--mount",
    "--propagation",
    "slave",
    "/bin/sh",
    "-c",
    `set -eu; ${hide}; exec 2>&1; ${script}`,
  ];
  return new Promise((resolve, reject) => {
    execFile("/usr/bin/unshare", words, { env }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(new Error(stdout, { cause: error })),
    );
  });
}

test("--print shows the unit for this copy, names what of the shell would be lost, and changes nothing", async () => {
  const data = join(folder, "none");
  const { code, stdout, stderr } = await svc(["install", "--print", "--data-dir", data], {
    MAX_REQUESTS: "5",
  });
  expect(code).toBe(0);
  expect(stdout).toContain(`ExecStart=${ROOT}/svc up --no-example --data-dir ${data}\n`);
  expect(stderr).toMatch(/does not get what this shell sets: .*MAX_REQUESTS/);
  expect(existsSync(data)).toBe(false);
});

test("install writes the unit and says that systemd does not run; uninstall removes it and leaves the data", async () => {
  const said = await apart(`
    $SVC install --data-dir $DATA
    $SVC install --data-dir $DATA --print >$DATA/printed 2>/dev/null
    cmp $DATA/printed $UNIT && echo same
    $SVC uninstall --data-dir $DATA
    test ! -e $UNIT && test -d $DATA && echo gone
    $SVC uninstall --data-dir $DATA`);
  expect(said).toContain(`Written: ${UNIT}`);
  expect(said).toContain("systemd does not run here");
  expect(said).toMatch(/same\n(.*\n)*gone\nNothing is installed/);
});

test("the unit of another copy is left as it is", async () => {
  const said = await apart(`
    echo '# Made by ./svc install in /elsewhere' >$UNIT
    $SVC install --data-dir $DATA || echo refused
    $SVC uninstall --data-dir $DATA || echo refused
    cat $UNIT`);
  expect(said.match(/^refused$/gm)).toHaveLength(2);
  expect(said).toContain("was not made by this working copy");
  expect(said.trimEnd()).toMatch(/# Made by .\/svc install in \/elsewhere$/);
});
