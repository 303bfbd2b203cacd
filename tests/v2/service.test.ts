/**
 * docs/deploy.md where Debian's systemd is the first process: the service that ./svc install makes, Debian's Caddy in front of it, and a
 * call from another machine. The page's own commands, in the working copy itself, whose data are forgotten with the machine.
 */
import { execFile } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { slow } from "@svc/test-kit/jail/slowness";
import { readPage } from "@svc/test-kit/programs/page";
import type { Said } from "@svc/test-kit/system/fresh-clone";
import { type OtherMachine, startOtherMachine } from "@svc/test-kit/system/other-machine";
import { afterAll, beforeAll, expect, test } from "vitest";

const PAGE = readPage("docs/deploy.md");
const [, settings = ""] = PAGE.blocks("sh", "One machine");
const [keys = ""] = PAGE.blocks("sh", "3. Who may call");
const [install = ""] = PAGE.blocks("sh", "4. A service of systemd");
const [tryIt = ""] = PAGE.blocks("sh", "7. Try it");
const UNIT = "/etc/systemd/system/svc.service";
const AUTHORITY = "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt";
const START_MS = slow(180_000);

/** What fits into the machine, and the time that it takes. */
const SMALL = `
SANDBOX_MAX_CONCURRENT_JOBS=2
SANDBOX_MAX_PAUSED=2
SANDBOX_WORKSPACE_MAX_BYTES=${128 << 20}
SVC_READY_TIMEOUT=${slow(120)}
`;

let other: OtherMachine;
let key: string;

function run(script: string): Promise<Said> {
  return new Promise((resolve) => {
    execFile("bash", ["-euo", "pipefail", "-c", script], { cwd: ROOT }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}

async function done(script: string): Promise<Said> {
  const said = await run(script);
  if (said.code !== 0) throw new Error(`${script}\n${said.stdout}\n${said.stderr}\n${await journal()}`);
  return said;
}
const journal = async () => (await run("journalctl --no-pager -n 60")).stdout;

beforeAll(async () => {
  other = await startOtherMachine(["code.example.com"]);
});
afterAll(() => other?.remove());

test("systemd is the first process", () => {
  expect(readFileSync("/proc/1/comm", "utf8")).toBe("systemd\n");
});

test("the commands of the page make a service that is ready when they end", {
  timeout: START_MS,
}, async () => {
  await done(settings);
  key = (await done(keys)).stdout.trim();
  appendFileSync(join(ROOT, "data/svc.env"), SMALL);
  const { stdout } = await done(install);
  expect(stdout).toContain(`Written: ${UNIT}`);
  expect(stdout).toContain(readFileSync(UNIT, "utf8"));
  expect(stdout).toMatch(/Active: active \(running\)/);
  expect((await run("systemctl is-enabled svc")).stdout).toBe("enabled\n");
});

test("another machine reaches it through Caddy by TLS, with a key and not without", async () => {
  const site = readFileSync(join(ROOT, "deploy/proxies/Caddyfile"), "utf8");
  writeFileSync("/etc/caddy/Caddyfile", `{\n\tlocal_certs\n\tskip_install_trust\n}\n\n${site}`);
  await done("systemctl restart caddy");
  await expect.poll(() => existsSync(AUTHORITY)).toBe(true);
  const env = { CURL_CA_BUNDLE: AUTHORITY, TOKEN: key };
  const health = () => other.run(["curl", "-sf", "https://code.example.com/v1/health"], env);
  await expect.poll(health).toMatchObject({ code: 0 });
  const { stdout, stderr } = await other.run(["bash", "-euo", "pipefail", "-c", tryIt], env);
  expect(stdout, stderr).toMatch(/^401$/m);
  expect(stdout, stderr).toContain('"stdout":"42\\n"');
});

test("./svc install again restarts the service, whose ports are its own", { timeout: START_MS }, async () => {
  const before = (await done("systemctl show svc --property=MainPID --value")).stdout;
  const { stdout } = await done("./svc install");
  expect(stdout).toContain("Running: ");
  expect((await done("systemctl show svc --property=MainPID --value")).stdout).not.toBe(before);
  const answer = await run(
    `curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:3112/v1/files/aaaaaaaaaaaaaaaaaaaaa`,
  );
  expect(answer.stdout).toBe("401");
});

test("wrong settings are told before the running service is touched", async () => {
  const before = (await done("systemctl show svc --property=MainPID --value")).stdout;
  const file = join(ROOT, "data/svc.env");
  const good = readFileSync(file);
  appendFileSync(file, "MAX_REQUESTS=many\n");
  const said = await run("./svc install");
  writeFileSync(file, good);
  expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining("MAX_REQUESTS") });
  expect((await done("systemctl show svc --property=MainPID --value")).stdout).toBe(before);
});

test("./svc uninstall ends everything, and data stay", async () => {
  await done("./svc uninstall");
  expect(existsSync(UNIT)).toBe(false);
  expect((await run("systemctl is-active svc")).stdout).toBe("inactive\n");
  expect((await run("pgrep -f jail/build/jaild")).stdout).toBe("");
  expect(existsSync(join(ROOT, "data/secrets.env"))).toBe(true);
});
