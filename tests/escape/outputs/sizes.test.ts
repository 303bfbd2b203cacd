/** Numbers and sizes of outputs: at the limit and one beside it, thousands of files, holes, and what a browser would run. */
import { createHash } from "node:crypto";
import { output } from "@svc/test-kit/system/api";
import { expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

const LARGEST = 10_000_000;

test.each([
  [50, 0],
  [51, 1],
  [5000, 4950],
])("of %i files fifty come back, and %i are counted", async (count, omitted) => {
  const answer = await hostile({
    lang: "py",
    code: `for n in range(${count}): open(f"f{n:04}", "w").write(str(n))`,
  });
  expect(answer.files.map(({ name }) => name)).toEqual(
    Array.from({ length: 50 }, (_, at) => `f${String(at).padStart(4, "0")}`),
  );
  expect(answer.files_omitted_count ?? 0).toBe(omitted);
  expect(answer.files_omitted ?? []).toHaveLength(Math.min(omitted, 100));
});

test("files of the largest size less one, exactly, and more one", async () => {
  const answer = await hostile({
    lang: "py",
    code: `
import hashlib, random
for size in (${LARGEST - 1}, ${LARGEST}, ${LARGEST + 1}):
    data = random.Random(size).randbytes(size); open(str(size), "wb").write(data); print(hashlib.sha256(data).hexdigest())`,
  });
  const hashes = answer.stdout.split("\n");
  expect(answer.files.map(({ name }) => name)).toEqual([`${LARGEST}`, `${LARGEST - 1}`]);
  expect(answer.files_omitted).toEqual([{ name: `${LARGEST + 1}`, reason: "size" }]);
  for (const [at, size] of [LARGEST - 1, LARGEST].entries()) {
    const bytes = await attacker.bytes(output(answer, `${size}`));
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(hashes[at]);
  }
});

test("holes cost no memory and count by their size: one of the largest comes back as zeros, one of a terabyte cannot be made", async () => {
  const answer = await hostile({
    lang: "bash",
    code: `truncate -s ${LARGEST} hole; truncate -s 64M large; for size in 1T 7E; do (truncate -s $size huge) 2> /dev/null; stat -c %s huge; rm huge; done; ls -s | awk '{s+=$1} END {print (s < 100)}'; exit 0`,
  });
  expect(answer.stdout).toBe("0\n0\n1\n");
  expect(answer.files.map(({ name }) => name)).toEqual(["hole"]);
  expect(answer.files_omitted).toEqual([{ name: "large", reason: "size" }]);
  const bytes = await attacker.bytes(output(answer, "hole"));
  expect([bytes.length, bytes.every((byte) => byte === 0)]).toEqual([LARGEST, true]);
});

test("what a browser would run is served as an attachment that it must not guess about", async () => {
  const contents: Record<string, string> = {
    "page.html": "<script>alert(1)</script>",
    "image.svg": "<svg onload=alert(1)>",
    "page.xhtml": "<html/>",
    "code.js": "alert(1)",
    "doc.xml": "<?xml-stylesheet href='x'?>",
    "sheet.css": "*{}",
    "doc.pdf": "%PDF-1.4",
    "frame.swf": "FWS",
    "page.HTM": "<script>",
    noextension: "<html><script>",
    "image.png": "<script>",
    "page.mht": "x",
    "x.hta": "<script>",
  };
  const answer = await hostile({
    lang: "py",
    code: "import json, sys\nfor n, c in json.load(sys.stdin).items(): open(n, 'w').write(c)",
    stdin: JSON.stringify(contents),
  });
  expect(answer.files).toHaveLength(Object.keys(contents).length);
  for (const file of answer.files) {
    const { headers, text } = await attacker.download(file);
    expect(text).toBe(contents[file.name]);
    expect([file.name, headers.get("content-disposition")]).toEqual([
      file.name,
      expect.stringMatching(/^attachment;/),
    ]);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  }
});

test("names in headers of a download cannot add a header or a second name", async () => {
  const names = [
    'a"; filename="evil.html',
    "a;b=c",
    "a\u0085b",
    "ünï.txt",
    "%0d%0aSet-Cookie: x=y",
    "a'b''c",
    "*=utf-8''x",
  ];
  const answer = await hostile({
    lang: "py",
    code: "import json, sys\nfor n in json.load(sys.stdin): open(n, 'w').write('x')",
    stdin: JSON.stringify(names),
  });
  for (const file of answer.files) {
    const { headers } = await attacker.download(file);
    const disposition = headers.get("content-disposition") ?? "";
    expect(headers.get("set-cookie")).toBeNull();
    expect(disposition).toMatch(
      /^attachment; filename="(?:[^"\\]|\\.)*"(?:; filename\*=UTF-8''[A-Za-z0-9!#$&+.^_`|~%-]*)?$/,
    );
  }
  expect(answer.files.length).toBeGreaterThanOrEqual(6);
});
