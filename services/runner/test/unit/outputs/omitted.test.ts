import { omittedFields, omittedNotes } from "@svc/runner/outputs/omitted";
import type { OmittedFile } from "@svc/runner/outputs/outputs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const many = (count: number, reason: OmittedFile["reason"] = "count"): OmittedFile[] =>
  Array.from({ length: count }, (_, at) => ({ name: `f${at}`, reason }));

const LIMITS = { maxFiles: 50, maxFileBytes: 10_000_000, maxTotalBytes: 100 << 20 };
const files = { kind: "files", asked: 200_000 } as const;
const bytesQuota = { ...files, resource: "bytes", used: 900_000, limit: 2 ** 20 } as const;
const objectsQuota = { ...files, resource: "objects", used: 1000, limit: 1000 } as const;
const COUNT = "count: at most 50 files are returned, an archive counts as one";
const notesOf = (omitted: OmittedFile[], unlisted = 0, timedOut = false, uncompared = false) =>
  omittedNotes(omitted, { unlisted, timedOut, uncompared }, LIMITS);

describe("omittedNotes", () => {
  it.each<[Omit<OmittedFile, "name">, string]>([
    [{ reason: "size", size: 20_000_000 }, "size: 20,000,000 bytes, at most 10,000,000 bytes"],
    [{ reason: "count" }, COUNT],
    [{ reason: "total_size" }, "total_size: at most 100 MiB together"],
    [{ reason: "name" }, "name"],
    [{ reason: "upload_failed" }, "upload_failed"],
    [{ reason: "quota", quota: bytesQuota }, "quota: 900,000 of 1 MiB are in use"],
    [{ reason: "quota", quota: objectsQuota }, "quota: 1,000 of 1,000 files are stored"],
  ])("a file that is omitted for %j is told with the limit", (why, text) => {
    expect(notesOf([{ name: "f", ...why }])).toEqual([`Output file omitted: f (${text})`]);
  });

  it.each([
    [0, 0, []],
    [1, 0, [`Output file omitted: f0 (${COUNT})`]],
    [5, 0, [0, 1, 2, 3, 4].map((at) => `Output file omitted: f${at} (${COUNT})`)],
  ])("%i files and %i unlisted ones", (count, unlisted, notes) => {
    expect(notesOf(many(count), unlisted)).toEqual(notes);
  });

  it("names the first five and counts the rest, unlisted ones too", () => {
    expect(notesOf(many(7))).toHaveLength(6);
    expect(notesOf(many(7)).at(-1)).toBe("and 2 more");
    expect(notesOf(many(7), 10).at(-1)).toBe("and 12 more");
    expect(notesOf([], 3)).toEqual(["and 3 more"]);
  });

  it("says that there may be more where the workspace could not be listed in time", () => {
    const late = "Output files omitted: the workspace could not be listed in time";
    expect(notesOf([], 1, true)).toEqual([late]);
    expect(notesOf(many(7), 1, true)).toHaveLength(6);
    expect(notesOf(many(7), 1, true).at(-1)).toBe(late);
  });

  it("says that inputs may be among what is returned as changed where they could not be compared in time", () => {
    const late =
      "Input files could not be compared in time: some that are returned as changed may be unchanged";
    expect(notesOf([], 0, false, true)).toEqual([late]);
    expect(notesOf(many(7), 0, false, true).slice(-2)).toEqual(["and 2 more", late]);
    expect(notesOf([], 1, true, true)).toHaveLength(2);
  });

  it("says nothing of what is not a regular file", () => {
    expect(notesOf(many(9, "type"))).toEqual([]);
  });

  it("no name can begin a line of its own or hide behind control characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 2000 }), (name) => {
        const [note = ""] = notesOf([{ name, reason: "name" }]);
        expect(note).not.toMatch(/\p{Cc}/u);
        expect(note.isWellFormed()).toBe(true);
        expect(note.length).toBeLessThan(350);
      }),
    );
  });
});

describe("omittedFields", () => {
  it("is empty when nothing was omitted", () => {
    expect(omittedFields([], 0)).toEqual({});
  });

  it("lists a hundred and counts all", () => {
    const fields = omittedFields(many(150), 7);
    expect(fields.files_omitted).toEqual(many(100));
    expect(fields.files_omitted_count).toBe(157);
  });

  it("counts alone what is not listed", () => {
    expect(omittedFields([], 3)).toEqual({ files_omitted_count: 3 });
  });

  it("lists what is not a regular file as well", () => {
    expect(omittedFields(many(1, "type"), 0)).toEqual({
      files_omitted: [{ name: "f0", reason: "type" }],
      files_omitted_count: 1,
    });
  });
});
