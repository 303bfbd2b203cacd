import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  BASE,
  chooseImage,
  contentOf,
  imageText,
  isSame,
  packageNames,
  readChoice,
  rememberChoice,
  runtimeNames,
} from "../../src/install/image.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-image-")));
afterAll(() => rmSync(folder, { recursive: true }));
const own = join(folder, "own");
mkdirSync(join(own, "wheels"), { recursive: true });

const before = { languages: ["go"], packages: ["data"] };

describe("what a copy's image has", () => {
  it("is nothing more than every image has, at first", () => {
    expect(chooseImage({}, {})).toEqual(BASE);
  });

  it("stays as it was chosen until something else is", () => {
    expect(chooseImage({}, {}, before)).toEqual(before);
    expect(chooseImage({ packages: "media" }, {}, before)).toEqual({ ...before, packages: ["media"] });
    expect(chooseImage({}, { SVC_LANGUAGES: "rs,php" }, before)).toEqual({
      ...before,
      languages: ["php", "rust"],
    });
  });

  it("is what an option says rather than a setting", () => {
    const settings = { SVC_LANGUAGES: "php", SVC_PACKAGES: "documents" };
    expect(chooseImage({ languages: "java", packages: "none" }, settings, before)).toEqual({
      languages: ["java"],
      packages: [],
    });
  });

  it("is the same in whatever order and by whatever names it is said", () => {
    const [one, other] = ["c++, golang", "go,cpp,go"].map((languages) => chooseImage({ languages }, {}));
    expect(isSame(one ?? BASE, other ?? before)).toBe(true);
    expect(isSame(before, BASE)).toBe(false);
  });

  it("is built from the mirror of its option until another one, or none, is named", () => {
    const mirror = "http://mirror.example/debian";
    const chosen = chooseImage({ mirror }, {}, before);
    expect(chosen).toEqual({ ...before, mirror });
    rememberChoice(own, chosen);
    expect(readChoice(own)).toEqual(chosen);
    expect(chooseImage({}, {}, chosen)).toEqual(chosen);
    expect(isSame(chosen, before)).toBe(false);
    expect(chooseImage({ mirror: "none" }, {}, chosen)).toEqual(before);
    for (const good of ["https://mirror.example:8080/debian/", "file:///srv/mirror"])
      expect(chooseImage({ mirror: good }, {}).mirror).toBe(good);
  });

  it.each([
    "",
    "mirror.example",
    "ftp://mirror.example/debian",
    "http://user:secret@mirror.example/debian",
    "http://mirror.example/a b",
    "http://mirror.example/[trusted=yes]",
    "http://mirror.example/debian\ndeb http://elsewhere.example",
  ])("is not built from %j, which is no mirror", (mirror) => {
    expect(() => chooseImage({ mirror }, {})).toThrow("is not the address of a Debian mirror");
  });

  it("is remembered in the data folder", () => {
    expect(readChoice(folder)).toBeUndefined();
    rememberChoice(folder, before);
    expect(readChoice(folder)).toEqual(before);
  });

  it.each(["", "{}", "null", '{"languages":["go"],"packages":"data"}'])(
    "is not guessed where the file says %j",
    (text) => {
      const dataDir = mkdtempSync(join(folder, "data-"));
      writeFileSync(join(dataDir, "image.json"), text);
      expect(() => readChoice(dataDir)).toThrow(
        expect.objectContaining({
          message: `${dataDir}/image.json does not say which languages and packages were chosen`,
          advice: "Remove it, and name them again: ./svc up --languages LIST --packages LIST",
        }),
      );
    },
  );
});

describe("languages", () => {
  it.each([
    ["all", ["all"]],
    ["go, RS,c++", ["cpp", "go", "rust"]],
    ["py,ALL", ["all"]],
    [",", []],
  ])("%j are the runtimes %j", (list, names) => expect(runtimeNames(list)).toEqual(names));

  it("that do not exist are refused with those that do", () => {
    expect(() => runtimeNames("go,cobol")).toThrow("there is no language cobol");
  });
});

describe("packages", () => {
  it("are groups, all of them, none, or folders", () => {
    expect(packageNames("media, data")).toEqual(["data", "media"]);
    expect(packageNames("all")).toEqual(["data", "documents", "media"]);
    expect(packageNames("none")).toEqual([]);
    expect(packageNames(`data,${own}`)).toEqual([own, "data"]);
    symlinkSync(own, join(folder, "link"));
    expect(packageNames("./link", (path) => join(folder, path))).toEqual([own]);
  });

  it.each([
    ["dtaa", /there is no package group dtaa; did you mean data\?/],
    [folder, /is not a folder of packages: it has none of packages, npm, wheels/],
    ["./own", /SVC_PACKAGES names \.\/own/],
  ])("of %s are refused", (list, message) => {
    expect(() => packageNames(list)).toThrow(message);
  });
});

describe("an image", () => {
  it("tells its languages and packages, and where it lies without links", () => {
    const image = join(folder, "image-1");
    mkdirSync(image);
    const manifest = { packages: ["data"], runtimes: [{ language: "bash" }, { language: "php" }] };
    writeFileSync(join(image, "runtimes.json"), JSON.stringify(manifest));
    symlinkSync(image, join(folder, "image"));
    const content = { folder: image, languages: ["bash", "php"], packages: ["data"] };
    expect(contentOf(join(folder, "image"))).toEqual(content);
    expect(imageText(content)).toBe("bash, php; packages: data");
    expect(contentOf(join(folder, "none"))).toBeUndefined();
  });
});
