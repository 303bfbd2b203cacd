/** Where the packages of an image come from: Debian's archives, as the host's apt sources have them, whatever release these name. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const IMAGE = resolve(import.meta.dirname, "../../image");
const SIGNERS = "/usr/share/keyrings/debian-archive-keyring.gpg";
let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "svc-archives-test-"));
  mkdirSync(join(scratch, "conf"));
  mkdirSync(join(scratch, "host"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

/** A source of the host that apt has read before, at an address where nobody answers now. */
function source(path: string, suite: string, release: string): string {
  writeFileSync(
    join(scratch, "host", `127.0.0.1:9_${path.replaceAll("/", "_")}_dists_${suite}_InRelease`),
    `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n${release}\nSHA256:\n Origin: Debian\n`,
  );
  return `deb http://127.0.0.1:9/${path} ${suite} main\n`;
}

function configure(sources: string, mirror = "") {
  writeFileSync(join(scratch, "host.list"), sources);
  writeFileSync(
    join(scratch, "apt.conf"),
    `Dir::Etc::sourcelist "${scratch}/host.list"; Dir::Etc::sourceparts "/dev/null";
     Acquire::Retries "0"; APT::Sandbox::User "root";`,
  );
  const script = `
    set -euo pipefail
    IMAGE_DIR=${IMAGE} RUNTIMES_DIR=/none RUNTIMES=() OUT=$1 ARCH=amd64 MIRROR=$2 SUITE=release PROGRESS=no
    source ${IMAGE}/lib/report
    source ${IMAGE}/lib/packages
    APT_DIR=$1
    configure_sources`;
  const { status, stderr } = spawnSync("/bin/bash", ["-c", script, "bash", scratch, mirror], {
    encoding: "utf8",
  });
  const written = join(scratch, "sources.list");
  return { status, stderr, lines: existsSync(written) ? readFileSync(written, "utf8").split("\n") : [] };
}

const from = (path: string, suite: string) =>
  `deb [signed-by=${SIGNERS}] http://127.0.0.1:9/${path} ${suite} main`;

test("another release of the host's archive and of its security archive, and nothing else of the host's", () => {
  const { status, lines } = configure(
    source("other", "release", "Origin: Other\nLabel: Debian") +
      source("near/debian", "old", "Origin: Debian\nLabel: Debian\nCodename: old") +
      source("near/debian", "old-backports", "Origin: Debian Backports\nLabel: Debian Backports") +
      source("fixes", "old-security", "Origin: Debian\nLabel: Debian-Security\nCodename: old-security") +
      source("far/debian", "old-updates", "Origin: Debian\nLabel: Debian\nCodename: old-updates"),
  );
  expect(status).toBe(0);
  expect(lines).toEqual([
    from("near/debian", "release"),
    from("near/debian", "release-updates"),
    from("fixes", "release-security"),
    "",
  ]);
});

test("a host without a security archive has the main one", () => {
  const { lines } = configure(source("debian", "old", "Origin: Debian\nLabel: Debian"));
  expect(lines).toEqual([from("debian", "release"), from("debian", "release-updates"), ""]);
});

test.each([
  ["only another distribution", () => source("other", "old", "Origin: Other\nLabel: Other")],
  ["no source", () => ""],
  ["a source that cannot be read", () => "deb http://127.0.0.1:9/debian old main\n"],
])("a host with %s is told to name a mirror", (_what, sources) => {
  const { status, stderr, lines } = configure(sources());
  expect([status, lines]).toEqual([1, []]);
  expect(stderr).toContain(
    "Cannot build the image: the apt sources of this host do not have Debian's archive",
  );
  expect(stderr).toContain("name a Debian mirror with --mirror URL");
});

test("a mirror that is named is taken whatever the host has", () => {
  const { status, lines } = configure("", "http://127.0.0.1:9/named");
  expect([status, lines]).toEqual([0, [from("named", "release"), from("named", "release-updates"), ""]]);
});
