/** Which image a link gets, and which images stay. The images here are folders that look like some. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";

const IMAGE_DIR = resolve(import.meta.dirname, "../../image");
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "svc-images-test-")));
const out = join(scratch, "out");
const HASH = "0123456789abcdef";

beforeEach(() => {
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function image(name: string, at = 1): string {
  const folder = join(out, `image-${name}`);
  mkdirSync(join(folder, "rootfs"), { recursive: true });
  writeFileSync(join(folder, "runtimes.json"), "{}");
  utimesSync(folder, at, at);
  return folder;
}

/** The folder of a copy with a link of its own. */
function copy(name: string): string {
  mkdirSync(join(scratch, name));
  return join(scratch, name, "image");
}

function bash(link: string, script: string, variables = "FORCE=no STRICT=no"): number | null {
  const head = `set -euo pipefail; shopt -s nullglob; IMAGE_DIR=${IMAGE_DIR} OUT=${out} LINK=${link} ${variables}`;
  const sources = ["report", "verify", "images"].map((name) => `source ${IMAGE_DIR}/lib/${name}`);
  const { status, stderr } = spawnSync("/bin/bash", ["-c", [head, ...sources, script].join("\n")], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return status;
}

const use = (link: string, folder: string) => expect(bash(link, `IMAGE=${folder}\nuse_image`)).toBe(0);
const isFresh = (link: string, variables?: string) => bash(link, `is_fresh ${HASH}`, variables) === 0;
const images = () => readdirSync(out).filter((name) => name.startsWith("image-"));

test("each link names its own image, and those that none names go", () => {
  const [tests, mine, yours, nobodys] = ["tests", "mine", "yours", "nobodys"].map((name) => image(name));
  use(join(out, "current"), tests as string);
  const [one, other] = [copy("one"), copy("other")];
  image("nobodys");
  image("mine");
  image("yours");
  use(one, mine as string);
  image("yours");
  use(other, yours as string);
  expect([one, other, join(out, "current")].map((link) => realpathSync(link))).toEqual([mine, yours, tests]);
  expect(images().sort()).toEqual(["image-mine", "image-tests", "image-yours"]);
  expect(existsSync(nobodys as string)).toBe(false);
  expect(readlinkSync(join(out, "rootfs"))).toBe("current/rootfs");
});

test("an image stays while a process has it mounted, and goes after that", async () => {
  const [mounted, next, last] = [image("mounted"), image("next"), image("last")];
  const hold = 'mount --bind "$0/rootfs" "$0/rootfs" && echo mounted && read -r _';
  const holder = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", hold, mounted]);
  await once(holder.stdout, "data");
  const link = copy("one");
  use(link, next);
  expect(images().sort()).toEqual(["image-mounted", "image-next"]);
  const ended = once(holder, "close");
  holder.stdin.end();
  await ended;
  image("last");
  use(link, last);
  expect(images()).toEqual(["image-last"]);
});

test("the image of a data folder that is gone, or that has another one now, goes", () => {
  const [gone, kept] = [image("gone"), image("kept")];
  const link = copy("removed");
  use(link, gone);
  rmSync(join(scratch, "removed"), { recursive: true });
  image("kept");
  use(join(out, "current"), kept);
  expect(images()).toEqual(["image-kept"]);
  expect(readdirSync(join(out, "links"))).toEqual([]);
});

test("a link that was made elsewhere counts only when it is known here", () => {
  const folder = image(`${HASH}.a`);
  const link = copy("moved");
  symlinkSync(folder, link);
  expect(isFresh(link)).toBe(false);
  use(link, folder);
  expect(isFresh(link)).toBe(true);
  expect(isFresh(link, "FORCE=yes STRICT=no")).toBe(false);
});

test("of several images of the same content the newest is taken, and none that is not complete", () => {
  image(`${HASH}.old`, 1);
  const newest = image(`${HASH}.new`, 3);
  rmSync(join(image(`${HASH}.broken`, 4), "runtimes.json"));
  lutimesSync(join(out, `image-${HASH}.broken`), 4, 4);
  image("fedcba9876543210.other", 5);
  const link = copy("one");
  expect(bash(link, `find_image ${HASH} && use_image`)).toBe(0);
  expect(realpathSync(link)).toBe(newest);
  expect(bash(link, "find_image 1111111111111111")).toBe(1);
});
