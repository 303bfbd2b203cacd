/** `./svc install` where systemd does not run, in a mount namespace whose folder of units is empty: nothing outside changes. */
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { freePort, freePorts } from "@svc/test-kit/system/free-ports";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apart } from "./support/apart.ts";
import { svc } from "./support/svc.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-install-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const UNIT = "/etc/systemd/system/svc.service";

/** Makes ./svc believe that systemd runs. */
const AS_BOOTED = "mount -t tmpfs svc /run; mkdir -p /run/systemd/system";

const NO_SYSTEMD =
  "mount -t tmpfs svc /etc/systemd/system; test ! -e /run/systemd/system || mount -t tmpfs svc /run/systemd";

/** Runs a script where no unit is written and systemd does not run; answers what it printed. */
const withoutSystemd = (script: string): Promise<string> =>
  apart(`${NO_SYSTEMD}; ${script}`, { DATA: join(folder, "data"), UNIT });

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
  const said = await withoutSystemd(`
    $SVC install --data-dir $DATA
    $SVC install --data-dir $DATA --print >$DATA/printed 2>/dev/null
    cmp $DATA/printed $UNIT && echo same
    $SVC uninstall --data-dir $DATA --print
    $SVC uninstall --data-dir $DATA
    test ! -e $UNIT && test -d $DATA && echo gone
    $SVC uninstall --data-dir $DATA`);
  expect(said).toContain(`Written: ${UNIT}`);
  const data = join(folder, "data");
  expect(said).toContain(`
systemd does not run here, so nothing is enabled or started. Where it runs:
  systemctl daemon-reload && systemctl enable --now svc.service
`);
  expect(said).toContain(`
same
Would end svc.service and remove ${UNIT}. ${data} stays.
Removed: ${UNIT}. ${data} stays.
gone
Nothing is installed: there is no ${UNIT}.
`);
});

test("the unit of another copy is left as it is", async () => {
  const said = await withoutSystemd(`
    echo '# Made by ./svc install in /elsewhere' >$UNIT
    $SVC install --data-dir $DATA || echo refused
    $SVC uninstall --data-dir $DATA || echo refused
    cat $UNIT`);
  expect(said.match(/^refused$/gm)).toHaveLength(2);
  const advice =
    "Run ./svc uninstall in the one that made it, which the first line of the file names, or move the file away.";
  const refusal = `error: ${UNIT} was not made by this working copy\n${advice}`;
  const print = `./svc install --print --data-dir ${join(folder, "data")}`;
  expect(said).toContain(`${refusal} ${print} shows ours.\nrefused\n`);
  expect(said).toContain(`${refusal}\nrefused\n`);
  expect(said.trimEnd()).toMatch(/# Made by .\/svc install in \/elsewhere$/);
});

/** A settings file with these lines, in a data folder of its own as $DATA of a script. */
function settings(name: string, lines: readonly string[]): string {
  const data = join(folder, name);
  mkdirSync(data);
  writeFileSync(join(data, "svc.env"), `${lines.join("\n")}\n`, { mode: 0o600 });
  return `DATA=${data}`;
}

test("settings that ./svc up refuses are refused in the same words, before anything is built or written", async () => {
  const data = settings("wrong", ["MAX_REQUESTS=many", "LOCAL_MODE=false", "SVC_PLAN_LIMIT={}"]);
  const said = await withoutSystemd(`${data}; SAID=$(mktemp -d)
    ! timeout 60 $SVC up --data-dir $DATA >$SAID/up 2>&1
    ! timeout 60 $SVC install --data-dir $DATA >$SAID/install 2>&1
    cmp $SAID/up $SAID/install && cat $SAID/install
    rm -r $SAID; test ! -e $UNIT && ls $DATA`);
  expect(said).toMatch(/MAX_REQUESTS/);
  expect(said).toMatch(/no key that verifies access tokens/);
  expect(said).toMatch(/SVC_PLAN_LIMIT is not known; did you mean SVC_PLAN_LIMITS\?/);
  expect(said.trimEnd()).toMatch(/\nsvc\.env$/);
});

test("wrong values of options are named together with wrong settings, by ./svc up and in the same words", async () => {
  const data = settings("wrong-options", ["MAX_REQUESTS=many"]);
  const options = "--languages klingon --packages dta,./nowhere --mirror ftp://mirror.example/debian";
  const said = await withoutSystemd(`${data}; SAID=$(mktemp -d)
    ! timeout 60 $SVC up --data-dir $DATA ${options} >$SAID/up 2>&1
    ! timeout 60 $SVC install --data-dir $DATA ${options} >$SAID/install 2>&1
    cmp $SAID/up $SAID/install && cat $SAID/install
    rm -r $SAID; test ! -e $UNIT && ls $DATA`);
  for (const part of [
    "--languages: there is no language klingon",
    "no package group dta; did you mean data?",
  ])
    expect(said).toContain(part);
  expect(said).toContain('--mirror: "ftp://mirror.example/debian" is not the address of a Debian mirror');
  expect(said).toContain(
    "It is an http, https or file URL without credentials, such as http://mirror.example/debian, or none.",
  );
  expect(said).toMatch(/ - MAX_REQUESTS/);
  expect(said.trimEnd()).toMatch(/\nsvc\.env$/);
});

test("languages and packages that were chosen are remembered, and settings that the service follows are not overruled", async () => {
  const data = settings("chosen", ["SVC_PACKAGES=none"]);
  const said = await withoutSystemd(`${data}
    $SVC install --data-dir $DATA --languages python
    cat $DATA/image.json
    $SVC install --data-dir $DATA
    cat $DATA/image.json
    $SVC install --data-dir $DATA --packages data || echo refused
    $SVC uninstall --data-dir $DATA`);
  expect(said.match(/^\{"languages":\["python"\],"packages":\[\]\}$/gm)).toHaveLength(2);
  const file = join(folder, "chosen/svc.env");
  expect(said).toContain(
    `--packages: ${file} sets SVC_PACKAGES, which the service follows. Change it there.`,
  );
  expect(said).toMatch(/^refused$/m);
});

test("--print names the folder of packages that is chosen", async () => {
  const packages = join(folder, "team");
  mkdirSync(join(packages, "wheels"), { recursive: true });
  const inHome = await svc(["install", "--print", "--packages", packages, "--data-dir", "/srv/none"]);
  expect(inHome.stdout).toContain("# PrivateTmp is not set");
  const wrong = await svc(["install", "--print", "--languages", "klingon"]);
  expect([wrong.code, wrong.stdout]).toEqual([2, ""]);
});

test("what the shell sets is neither judged nor used: the service does not get it", async () => {
  const said = await withoutSystemd(`
    MAX_REQUESTS=many SERVICE_PORT=1 $SVC install --data-dir $DATA
    $SVC uninstall --data-dir $DATA`);
  expect(said).toContain(`warning: the service does not get what this shell sets: MAX_REQUESTS, SERVICE_PORT
Put it into ${folder}/data/svc.env (docs/deploy.md).
`);
  expect(said).toContain(`Written: ${UNIT}`);
});

test("a port that somebody else holds is told before anything is built or written, where systemd would start the service", async () => {
  const server = createServer().listen(await freePort(), "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const ports = { ...(await freePorts()), SERVICE_PORT: String(port) };
    const data = settings(
      "taken",
      Object.entries(ports).map((pair) => pair.join("=")),
    );
    const said = await withoutSystemd(`${data}; ${AS_BOOTED}
      if $SVC install --data-dir $DATA; then exit 1; fi
      test ! -e $UNIT; echo refused`);
    expect(said).toMatch(
      new RegExp(`port ${port} of the api is taken by pid ${process.pid} .*\\(SERVICE_PORT\\)`),
    );
    expect(said.trimEnd()).toMatch(/\nrefused$/);
  } finally {
    server.close();
  }
});
