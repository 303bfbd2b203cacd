/** The text of the unit: where paths and settings of a copy go, and what they decide. */
import { stopSecondsOf } from "@svc/cli/supervisor/supervisor";
import { pathWord, topmost, unitText } from "@svc/cli/systemd/unit";
import { expect, test } from "vitest";

const SPEC = {
  root: "/opt/svc",
  options: ["--data-dir", "/var/lib/svc"],
  writable: ["/var/lib/svc", "/opt/svc/.pkgs", "/var/lib/svc/objects"],
  stopSeconds: 300,
};

const lineOf = (text: string, name: string) =>
  text.split("\n").filter((line) => line.startsWith(`${name}=`) || line.startsWith(`# ${name} is not set`));

test("the unit runs ./svc up for this copy and may write its folders alone", () => {
  const text = unitText(SPEC);
  expect(text.split("\n", 1)).toEqual(["# Made by ./svc install in /opt/svc"]);
  expect(lineOf(text, "ExecStart")).toEqual([
    "ExecStart=/opt/svc/svc up --no-example --data-dir /var/lib/svc",
  ]);
  expect(lineOf(text, "ReadWritePaths")).toEqual(["ReadWritePaths=/opt/svc /var/lib/svc"]);
  expect(lineOf(text, "ProtectHome")).toEqual(["ProtectHome=yes"]);
  expect(lineOf(text, "PrivateTmp")).toEqual(["PrivateTmp=yes"]);
  expect(lineOf(text, "TimeoutStopSec")).toEqual(["TimeoutStopSec=300s"]);
});

test("a copy in a home or temporary folder is not hidden from itself", () => {
  const text = unitText({ ...SPEC, root: "/home/ada/svc", writable: ["/tmp/data"] });
  expect(lineOf(text, "ProtectHome")).toEqual([expect.stringMatching(/is not set/)]);
  expect(lineOf(text, "PrivateTmp")).toEqual([expect.stringMatching(/is not set/)]);
  expect(lineOf(text, "ReadWritePaths")).toEqual(["ReadWritePaths=/home/ada/svc /tmp /var/tmp"]);
});

test("files that settings name are not hidden either", () => {
  const text = unitText({ ...SPEC, readable: ["/home/ada/keys", "/tmp/ca.pem"] });
  expect(lineOf(text, "ProtectHome")).toEqual([expect.stringMatching(/is not set/)]);
  expect(lineOf(text, "PrivateTmp")).toEqual([expect.stringMatching(/is not set/)]);
});

test("words are written as systemd reads them back", () => {
  expect(pathWord("/opt/my svc/100%")).toBe('"/opt/my svc/100%%"');
  expect(pathWord('/a"b\\c')).toBe('"/a\\"b\\\\c"');
  expect(() => pathWord("/a\nExecStart=/bin/sh")).toThrow(/no control characters/);
  const text = unitText({ ...SPEC, options: ["--data-dir", "/var/$HOME"] });
  expect(text).toContain('up --no-example --data-dir "/var/$$HOME"\n');
});

test("folders in another one of the list are left out", () => {
  expect(topmost(["/a/b", "/a", "/ab", "/a/b/c", "/a"])).toEqual(["/a", "/ab"]);
});

test("systemd waits as long as an end in order may take: ten steps of the grace time and its margin", () => {
  expect(stopSecondsOf(30_000)).toBe(350);
});
