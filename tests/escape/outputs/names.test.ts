/** Names of outputs: new lines, invalid UTF-8, lengths, options, escapes, directions, twins of one letter, hidden ones. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** A program that makes a file with each name; its content is the hash of the name. */
const making = (names: readonly string[]) => ({
  lang: "py",
  code: `
import hashlib, json, os, sys
for name in json.load(sys.stdin):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write(hashlib.sha256(name.encode()).hexdigest()[:12])`,
  stdin: JSON.stringify(names),
});

test("names that programs, shells and browsers take for something else come back letter by letter", async () => {
  const names = [
    "-rf",
    "--help",
    "*",
    "?",
    "~",
    "$(id)",
    "`id`",
    ";id",
    "a b",
    " leading",
    "trailing ",
    "%2e%2e",
    "%2fetc%2fpasswd",
    "..%2f",
    "...",
    "a..b",
    "'",
    '"',
    "&",
    "|",
    "<script>",
    "#",
    "con",
    "nul.txt",
    "file:",
    "http:x",
    "\u202etxt.exe",
    "\u200b",
    "\ufeffbom",
    "é",
    "e\u0301",
    "\u{1f600}",
    "İ",
    "ß",
    "SS",
    "{}",
    "__proto__",
    "constructor",
    "toString",
    ".hidden",
    "=cmd",
    "@",
    "a,b",
  ];
  const answer = await hostile(making(names));
  expect(answer.stderr).toBe("");
  expect(answer.files.map(({ name }) => name).sort()).toEqual(names.toSorted());
  expect(new Set(answer.files.map(({ id }) => id)).size).toBe(names.length);
  for (const file of answer.files) expect((await attacker.bytes(file)).toString()).toBe(hash(file.name));
});

test("they can be used as inputs again, each under its own name", async () => {
  const names = [
    "-rf",
    "$(touch evil)",
    "a b",
    "é",
    "e\u0301",
    "%2e%2e",
    "\u202etxt.exe",
    "__proto__",
    "'; rm -rf '",
  ];
  const made = await hostile(making(names));
  const files = made.files.map(({ id, storage_session_id, name }) => ({ id, storage_session_id, name }));
  const code = `import hashlib, os
print(all(open("./" + n).read() == hashlib.sha256(n.encode()).hexdigest()[:12] for n in os.listdir(".") if n != "main.py"), len(os.listdir(".")))`;
  expect((await hostile({ lang: "py", code, files })).stdout).toBe(`True ${names.length + 1}\n`);
});

test("names that are no text, or steer a terminal, are omitted under a harmless form", async () => {
  const answer = await hostile({
    lang: "py",
    code: `
for name in (b"new\\nline", b"return\\r", b"tab\\t", b"bell\\x07", b"escape\\x1b]0;x\\x07", b"\\xff\\xfe", b"cut\\xe2\\x80", b"over\\xc0\\xaf", b"half\\xed\\xa0\\x80", b"del\\x7f", b"back\\\\slash", b"c1\\xc2\\x9b31m"):
    open(name, "w").close()
open("good", "w").close()`,
  });
  const omitted = answer.files_omitted ?? [];
  expect(answer.files.map(({ name }) => name)).toContain("good");
  expect(answer.files.length + omitted.length).toBe(13);
  expect(omitted.length).toBeGreaterThanOrEqual(10);
  expect(omitted.every(({ reason }) => reason === "name")).toBe(true);
  for (const text of [
    answer.stderr.replaceAll("\n", ""),
    ...answer.files.map(({ name }) => name),
    ...omitted.map(({ name }) => name),
  ])
    expect(text).not.toMatch(/\p{Cc}/u);
});

test("the longest names and paths come back, longer ones do not", async () => {
  const at256 = `${"d".repeat(200)}/${"f".repeat(55)}`;
  const names = [
    "n".repeat(255),
    "ü".repeat(127),
    at256,
    `${at256}g`,
    "1/2/3/4/5/6/7/8/9/10",
    "1/2/3/4/5/6/7/8/9/x/11",
    `${"e".repeat(250)}/${"e".repeat(250)}/${"e".repeat(250)}`,
  ];
  const answer = await hostile(making(names));
  expect(answer.files.map(({ name }) => name).sort()).toEqual(
    ["n".repeat(255), "ü".repeat(127), at256, "1/2/3/4/5/6/7/8/9/10"].sort(),
  );
  expect(answer.files_omitted?.map(({ reason }) => reason)).toEqual(["name", "name", "name"]);
});

test("names that forge lines of notes cannot: each note is one line of the service", async () => {
  const answer = await hostile({
    lang: "py",
    code: `
for name in ("x (size)\\n[sandbox] Killed by signal SIGKILL", "[sandbox] Out of memory", "y\\u2028[sandbox] Time limit exceeded"):
    open(name, "wb").truncate(10_000_001)`,
  });
  expect(answer.status).toBeNull();
  const notes = answer.stderr.split("\n").filter(Boolean);
  expect(notes).toHaveLength(3);
  for (const line of notes) expect(line).toMatch(/^\[sandbox\] Output file omitted: /);
});

test("empty folders, hidden folders and files that look like marks of the service", async () => {
  const answer = await hostile({
    lang: "bash",
    code: "mkdir -p empty a/b .hidden/x; touch .hidden/x/f .dirkeep a/.dirkeep x.dirkeep '.dirkeep '; mkdir -p deep/.dirkeep",
  });
  const names = answer.files.map(({ name }) => name);
  expect(names).toContain("empty/.dirkeep");
  expect(names).toContain("a/.dirkeep");
  expect(names.filter((name) => name.startsWith(".hidden"))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});
