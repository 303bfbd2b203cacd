/**
 * docs/deploy.md, followed in a fresh clone up to a call from another machine through Caddy with TLS.
 * The copy is started by ./svc up instead of systemd, which does not run everywhere: tests/v2/service.test.ts has that step.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { codeOf, readPage } from "@svc/test-kit/programs/page";
import { type FreshClone, freshClone } from "@svc/test-kit/system/fresh-clone";
import { type OtherMachine, startOtherMachine } from "@svc/test-kit/system/other-machine";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SecureProxy, startSecureCaddy } from "./support/proxies.ts";

const PAGE = readPage("docs/deploy.md");
const SITE = "code.example.com";
const [machine = "", settings = "", keys = "", ...rest] = PAGE.blocks("sh", "One machine");
const [tryIt = ""] = PAGE.blocks("sh", "7. Try it");
const [firewall = ""] = PAGE.blocks("sh", "6. Firewall");

let clone: FreshClone;
let other: OtherMachine;
let proxy: SecureProxy;
let key: string;

/** Commands of the page on the other machine, where the name of the site is the one of this machine. */
const there = (script: string, env: Record<string, string> = {}) =>
  other.run(["bash", "--norc", "-euo", "pipefail", "-c", script.replaceAll(`https://${SITE}`, proxy.url)], {
    CURL_CA_BUNDLE: proxy.authority,
    TOKEN: key,
    ...env,
  });

beforeAll(async () => {
  clone = await freshClone();
  other = await startOtherMachine([SITE]);
});
afterAll(async () => {
  await proxy?.stop();
  await other?.remove();
  expect(await clone?.remove()).toMatchObject({ code: 0 });
});

test("the steps before the service: the host is fit, settings are written, a key is made", async () => {
  expect(rest.length).toBeGreaterThan(0);
  const [, doctor = ""] = /^(\.\/svc doctor).*$/m.exec(machine) ?? [];
  const fit = await clone.run(doctor);
  expect(fit, fit.stdout).toMatchObject({ code: 0, stdout: expect.stringContaining("Fit to run.") });
  expect(await clone.run(settings)).toMatchObject({ code: 0, stderr: "" });
  const added = await clone.run(keys);
  expect(added, added.stderr).toMatchObject({ code: 0 });
  key = added.stdout.trim();
  expect(key).toMatch(/^svc_/);
});

test("the service starts with these settings and asks for credentials, and Caddy stands before it with its file", async () => {
  expect((await clone.run("./svc install --print")).stdout).toContain(" up --no-example ");
  const started = await clone.run("./svc up -d");
  expect(started, started.stderr).toMatchObject({ code: 0 });
  expect(started.stdout).toMatch(/^Ready: .*\(authentication: 1 API key\)$/m);
  proxy = await startSecureCaddy(clone.instance.ports.api, SITE);
});

test("another machine reaches the service by TLS alone, with a key and not without", async () => {
  const { stdout, stderr } = await there(tryIt);
  expect(stdout, stderr).toMatch(/^\{"status":"ok",.*\}$/m);
  expect(stdout).toMatch(/^401$/m);
  expect(JSON.parse(stdout.slice(stdout.lastIndexOf("\n{") + 1))).toMatchObject({ stdout: "42\n" });
  const direct = await there(`curl -s -m 5 http://${other.here}:${clone.instance.ports.api}/v1/health`);
  expect(direct).toMatchObject({ code: 7, stdout: "" });
});

test("100 MB go through in one request, and a program reads them", async () => {
  const upload = await there(`
    cd "$(mktemp -d)"; for n in 1 2 3 4; do head -c 26214400 /dev/zero >$n.bin; done
    curl -s https://${SITE}/v1/upload -H "Authorization: Bearer $TOKEN" -F file=@1.bin -F file=@2.bin -F file=@3.bin -F file=@4.bin
    rm -r "$PWD"`);
  const { files } = JSON.parse(upload.stdout) as {
    files: { id: string; storage_session_id: string; name: string }[];
  };
  const code = "import os; print(sum(os.path.getsize(f'{n}.bin') for n in range(1, 5)))";
  const refs = files.map(({ id, storage_session_id, name }) => ({ id, storage_session_id, name }));
  const body = JSON.stringify({ lang: "py", code, files: refs });
  const ran = await there(
    `curl -s https://${SITE}/v1/exec -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d "$BODY"`,
    { BODY: body },
  );
  expect(JSON.parse(ran.stdout)).toMatchObject({ stdout: "104857600\n" });
});

test("only the proxy can be reached: all components listen on loopback", async () => {
  const ports = Object.values(clone.instance.ports);
  const command = firewall.replace(/\(3112[\d|]*\)/, `(${ports.join("|")})`);
  expect(command).not.toBe(firewall);
  const { stdout } = await clone.run(command);
  const lines = stdout.trim().split("\n");
  expect(lines).toHaveLength(ports.length);
  for (const line of lines) expect(line).toMatch(/ 127\.0\.0\.1:\d+ /);
});

/** What this machine of many purposes and without systemd cannot show. */
const OF_THE_MACHINE = [
  "nothing listens outside but the proxy and SSH",
  "what systemd denies the service",
  "updates of kernel and Debian",
];
const KNOWN = readFileSync(join(ROOT, "runtimes/image/debs/trixie-amd64"), "utf8")
  .split("\n")
  .map((line) => line.split(" ")[0]);
const checklist = PAGE.rows("Hardening checklist")
  .map(([check = "", command, expected = ""]) => [check, codeOf(command)[0] ?? "", expected] as const)
  .filter(([check, command]) => command !== "" && !OF_THE_MACHINE.includes(check));

test.each(checklist)("the hardening checklist: %s", async (_check, command, expected) => {
  const run = command.includes("https://SITE") ? there : clone.run;
  const { stdout, stderr } = await run(command.replaceAll("https://SITE", `https://${SITE}`));
  const [, start = ""] = /^`([^`…]+)/.exec(expected) ?? [];
  const [, updated] =
    /differs from the repository's manifest: \d+ packages \(([^)]*?)(?:, …)?\)/.exec(stdout) ?? [];
  // Debian may have put out updates since: of packages that the manifest knows, none besides.
  if (updated !== undefined)
    for (const one of updated.split(", ")) expect(KNOWN).toContain(one.split(" ")[0]);
  else expect(`${stdout}${stderr}`).toContain(start);
  expect(stdout).not.toBe("");
});

test("the checklist has commands for all but a few lines", () => {
  expect(checklist.length).toBeGreaterThan(12);
});

test("the API itself, behind a proxy, keeps its metrics from callers without the token", async () => {
  const [, token = ""] =
    /^SVC_METRICS_TOKEN=(\w+)$/m.exec(readFileSync(join(clone.dataDir, "svc.env"), "utf8")) ?? [];
  const ask = (headers: Record<string, string>) => fetch(`${clone.instance.url}/metrics`, { headers });
  expect((await ask({})).status).not.toBe(200);
  expect((await ask({ authorization: `Bearer ${token}` })).status).toBe(200);
  expect(existsSync(join(clone.dataDir, "secrets.env"))).toBe(true);
});
