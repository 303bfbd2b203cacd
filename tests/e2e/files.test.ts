/** Files of a program: under which paths inputs appear, and what is said of them afterwards. */
import type { FileRef, UploadedFile } from "@svc/contracts";
import { Api, ID, output, refTo, type UploadAnswer } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const api = new Api(sharedSystem().url);

const NAMES = [
  "plain.txt",
  "with space.txt",
  "ünïcödé/日本語 🎈.txt",
  "a/b/c/d/e/f/g/h/i/deep.txt",
  "'quotes\" and $(id).txt",
  "-option",
  "%2e%2e/percent",
  ".hidden",
  ".config/app.json",
  "no-extension",
  "$&",
  "__proto__",
] as const;

describe("names", () => {
  test("an input appears under the name of its reference, whatever it was uploaded as", async () => {
    const [file] = await api.upload({ "uploaded as.bin": "content" });
    const files = NAMES.map((name) => refTo(file as UploadedFile, name));
    const code = `import os, json
paths = sorted(os.path.join(d, f)[2:] for d, _, fs in os.walk(".") for f in fs)
print(json.dumps([p for p in paths if p != "main.py"]))
print(all(open(p).read() == "content" for p in paths if p != "main.py"))`;
    const answer = await api.exec({ lang: "py", code, files });
    expect(answer).toMatchObject({ stderr: "", code: 0 });
    const [paths = "", same] = answer.stdout.trim().split("\n");
    expect(new Set(JSON.parse(paths))).toEqual(new Set(NAMES));
    expect(same).toBe("True");
    expect(answer.files.map(({ name, inherited }) => [name, inherited])).toEqual(
      NAMES.map((name) => [name, true]),
    );
  });

  test("outputs keep the names that the program gave them", async () => {
    const code = `import os, json
for name in json.load(open(0)):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write("made " + name)`;
    const answer = await api.exec({ lang: "py", code, stdin: JSON.stringify(NAMES) });
    expect(answer).toMatchObject({ stderr: "", code: 0 });
    // A new directory whose name starts with a dot is left out without a word.
    const expected = NAMES.filter((name) => name !== ".config/app.json");
    expect(answer.files.map(({ name }) => name)).toEqual(
      [...expected].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    );
    for (const file of answer.files) expect((await api.bytes(file)).toString()).toBe(`made ${file.name}`);
  });

  test("names survive upload, listing, download and a second program", async () => {
    const name = "größe/日本 (1) 'x'.txt";
    const [file] = await api.upload({ [name]: "content" });
    expect(file).toMatchObject({ name, filename: name });
    const header = (await api.download(file as UploadedFile)).headers.get("content-disposition") ?? "";
    const encoded = /filename\*=UTF-8''([^;]+)$/.exec(header)?.[1] ?? "";
    expect(encoded).toMatch(/^[A-Za-z0-9!#$&+.^_`|~%-]+$/);
    expect(decodeURIComponent(encoded)).toBe(name);
    const answer = await api.exec({
      lang: "bash",
      code: `cp '${name.replaceAll("'", `'\\''`)}' "copied $1"`,
      args: ["日本"],
      files: [refTo(file as UploadedFile)],
    });
    expect((await api.bytes(output(answer, "copied 日本"))).toString()).toBe("content");
  });

  test.each([
    ["py", "main.py", "main_1.py", "import sys; print(sys.argv[0])"],
    ["bash", "script.sh", "script_1.sh", "echo $0"],
    ["js", "index.js", "index_1.js", "console.log(require('path').basename(__filename))"],
    ["ts", "main.ts", "main_1.ts", "console.log(require('path').basename(__filename))"],
  ])("%s: an input called %s keeps its name, the program gets %s", async (lang, entry, free, code) => {
    const files = [await api.stage(entry, "an input")];
    const answer = await api.exec({ lang, code, files });
    expect(answer).toMatchObject({ stdout: `${free}\n`, stderr: "", code: 0 });
    expect(answer.files).toMatchObject([{ ...files[0], kind: "user", inherited: true }]);
    const both = [...files, await api.stage(free, "another")];
    expect((await api.exec({ lang, code, files: both })).stdout).toBe(`${free.replace("_1", "_2")}\n`);
  });

  test("the program itself is an output only when it changed", async () => {
    const answer = await api.exec({ lang: "bash", code: "ls; echo '# more' >> script.sh" });
    expect(answer.stdout).toBe("script.sh\n");
    const [changed] = answer.files;
    expect(changed).toMatchObject({ name: "script.sh", storage_session_id: answer.session_id });
    expect(changed?.modified_from).toBeUndefined();
  });
});

describe("what is said of inputs", () => {
  const OWNERS: [name: string, fields: Record<string, string>, ref: Partial<FileRef>][] = [
    ["a user", {}, {}],
    ["a user, with the file's own id as resource", {}, { kind: "user", resource_id: "anything at all" }],
    [
      "an agent",
      { kind: "agent", id: "agent_1" },
      { kind: "agent", resource_id: "agent_1", entity_id: "legacy" },
    ],
    [
      "a skill",
      { kind: "skill", id: "skill:1", version: "3" },
      { kind: "skill", resource_id: "skill:1", version: 3 },
    ],
  ];

  test.each(OWNERS)("an unchanged input of %s comes back as it was named", async (_name, fields, extra) => {
    const ref = { ...(await api.stage("input.txt", "x", fields)), ...extra };
    const answer = await api.exec({ lang: "bash", code: "cat input.txt", files: [{ ...ref, surplus: 1 }] });
    expect(answer.stdout).toBe("x");
    expect(answer.files).toMatchObject([{ kind: "user", ...ref, inherited: true }]);
  });

  test.each(OWNERS)("a changed input of %s becomes the user's own new file", async (_name, fields, extra) => {
    const ref = { ...(await api.stage("input.txt", "x", fields)), ...extra };
    const answer = await api.exec({ lang: "bash", code: "echo y >> input.txt", files: [ref] });
    expect(answer.files).toEqual([
      {
        id: expect.stringMatching(ID),
        name: "input.txt",
        storage_session_id: answer.session_id,
        kind: "user",
        resource_id: expect.any(String),
        modified_from: { id: ref.id, storage_session_id: ref.storage_session_id },
        size: 3,
        content_type: "text/plain",
      },
    ]);
    expect((await api.bytes(output(answer, "input.txt"))).toString()).toBe("xy\n");
  });

  test("one file under two names: each is told apart", async () => {
    const ref = await api.stage("a.txt", "one");
    const files = [ref, { ...ref, name: "b.txt" }];
    const answer = await api.exec({ lang: "bash", code: "echo two >> b.txt", files });
    expect(answer.files.map(({ name, inherited }) => [name, inherited])).toEqual([
      ["b.txt", undefined],
      ["a.txt", true],
    ]);
  });

  test("new and changed files come by path, inherited ones as they were asked for", async () => {
    const refs = Object.values(await api.upload({ "z.txt": "z", "m.txt": "m", "a.txt": "a" })).map((file) =>
      refTo(file),
    );
    const answer = await api.exec({
      lang: "bash",
      code: "echo > y.txt; echo > b.txt; echo >> m.txt",
      files: refs,
    });
    expect(answer.files.map(({ name }) => name)).toEqual(["b.txt", "m.txt", "y.txt", "z.txt", "a.txt"]);
  });

  test("removed and renamed inputs are deleted files; missing ones are not", async () => {
    const files = (await api.upload({ "gone.txt": "1", "d/moved.txt": "2", "kept.txt": "3" })).map((file) =>
      refTo(file),
    );
    const answer = await api.exec({ lang: "bash", code: "rm gone.txt; mv d/moved.txt new-name.txt", files });
    expect(answer.deleted_files).toEqual(["gone.txt", "d/moved.txt"]);
    expect(answer.files.map(({ name, inherited }) => [name, inherited ?? false])).toEqual([
      ["d/.dirkeep", false],
      ["new-name.txt", false],
      ["kept.txt", true],
    ]);
    expect(output(answer, "new-name.txt").modified_from).toBeUndefined();
    expect((await api.bytes(files[0] as FileRef)).toString()).toBe("1");
    expect((await api.exec({ lang: "bash", code: "true" })).deleted_files).toBeUndefined();
  });

  test("an input that became a directory is deleted", async () => {
    const files = [await api.stage("thing", "file")];
    const answer = await api.exec({
      lang: "bash",
      code: "rm thing; mkdir thing; echo > thing/inside",
      files,
    });
    expect(answer.deleted_files).toEqual(["thing"]);
    expect(answer.files.map(({ name }) => name)).toEqual(["thing/inside"]);
  });
});

describe("directories", () => {
  test("empty ones come back as .dirkeep and exist again in the next program", async () => {
    const made = await api.exec({ lang: "bash", code: "mkdir -p empty/inner full; echo x > full/file" });
    expect(made.files.map(({ name }) => name)).toEqual(["empty/inner/.dirkeep", "full/file"]);
    const keep = output(made, "empty/inner/.dirkeep");
    expect(await api.bytes(keep)).toHaveLength(0);
    const code = "find . -mindepth 1 ! -name script.sh | sort";
    const named = await api.exec({ lang: "bash", code, files: [refTo(keep)] });
    expect(named.stdout).toBe("./empty\n./empty/inner\n");
    expect(named.files).toMatchObject([{ ...refTo(keep), kind: "user", inherited: true }]);
    const beside = await api.exec({ lang: "bash", code, files: [refTo(output(made, "full/file"))] });
    expect(beside.stdout).toBe("./empty\n./empty/inner\n./full\n./full/file\n");
    expect(beside.files.map(({ name }) => name)).toEqual(["full/file"]);
  });

  test("a kept directory that was removed or filled is told so", async () => {
    const made = await api.exec({ lang: "bash", code: "mkdir one two" });
    const files = made.files.map((file) => refTo(file));
    const answer = await api.exec({ lang: "bash", code: "rmdir one; echo > two/file", files });
    expect(answer.deleted_files).toEqual(["one/.dirkeep"]);
    expect(answer.files.map(({ name, inherited }) => [name, inherited ?? false])).toEqual([
      ["two/file", false],
      ["two/.dirkeep", true],
    ]);
  });
});

describe("uploads", () => {
  test("fields may stand before, between and behind the files", async () => {
    const answer = await api.form("/upload", [
      { field: "kind", content: "agent" },
      { name: "a.txt", content: "a" },
      { field: "id", content: "agent-7" },
      { field: "attachment", name: "dir/b.txt", content: "b", type: "text/plain" },
      { field: "read_only", content: "TRUE" },
    ]);
    const { files } = answer.ok<UploadAnswer>();
    expect(files.map(({ name }) => name)).toEqual(["a.txt", "dir/b.txt"]);
    expect(new Set(files.map(({ storage_session_id }) => storage_session_id)).size).toBe(1);
    const [a] = files as [UploadedFile];
    expect((await api.download(a)).status).toBe(404);
    const own = await api.download(a, {}, "?kind=agent&id=agent-7");
    expect([own.status, own.headers.get("x-read-only")]).toEqual([200, "true"]);
  });
});
