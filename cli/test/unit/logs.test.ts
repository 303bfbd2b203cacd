/** Logs as `./svc` keeps and reads them: rotation, following across it, merging, the lines of one request. */
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lastRecords, mergedRecords } from "../../src/logs/files.ts";
import { LogFollower } from "../../src/logs/follower.ts";
import { jsonOf, recordOf, textOf } from "../../src/logs/record.ts";
import { RequestFilter } from "../../src/logs/request.ts";
import { rotateLog, rotationRules } from "../../src/supervisor/rotation.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-logs-"));
  path = join(folder, "api.log");
});
afterEach(() => rmSync(folder, { recursive: true }));

const rules = { bytes: 10, keep: 2 };
const files = () => readdirSync(folder).sort();
const read = (name: string) => readFileSync(join(folder, name), "utf8");

describe("rotation", () => {
  it("moves a file beyond the limit aside, keeps as many as it is told, and empties the file in its place", () => {
    writeFileSync(path, "first\n");
    expect(rotateLog(path, rules)).toBe(false);
    for (const word of ["one", "two", "three"]) {
      appendFileSync(path, `a line of ${word}\n`);
      expect(rotateLog(path, rules)).toBe(true);
      expect(read("api.log")).toBe("");
    }
    expect(files()).toEqual(["api.log", "api.log.1", "api.log.2"]);
    expect([read("api.log.2"), read("api.log.1")]).toEqual(["a line of two\n", "a line of three\n"]);
    appendFileSync(path, "after\n");
    expect(read("api.log")).toBe("after\n");
  });

  it("removes what an earlier and larger number of files has left", () => {
    for (const n of [1, 2, 3, 4]) writeFileSync(`${path}.${n}`, `${n}`);
    writeFileSync(path, "a longer line\n");
    rotateLog(path, rules);
    expect([files(), read("api.log.2")]).toEqual([["api.log", "api.log.1", "api.log.2"], "1"]);
  });

  it("does nothing where there is no file, and never with a limit of 0", () => {
    expect(rotateLog(join(folder, "none.log"), rules)).toBe(false);
    writeFileSync(path, "a longer line\n");
    expect(rotateLog(path, { bytes: 0, keep: 5 })).toBe(false);
  });

  it("has rules by the documented variables", () => {
    expect(rotationRules({})).toEqual({ bytes: 50 * 2 ** 20, keep: 5 });
    expect(rotationRules({ LOG_ROTATE_BYTES: "1m", LOG_ROTATE_KEEP: "9" })).toEqual({
      bytes: 2 ** 20,
      keep: 9,
    });
  });
});

describe("a follower", () => {
  it("reads whole lines from its start on", () => {
    writeFileSync(path, "before\n");
    const follower = new LogFollower(path);
    expect(follower.read()).toEqual([]);
    appendFileSync(path, "one\ntw");
    expect(follower.read()).toEqual(["one"]);
    appendFileSync(path, "o\n");
    expect(follower.read()).toEqual(["two"]);
  });

  it("goes on at the right place after bytes that are no UTF-8, and within a character", () => {
    writeFileSync(path, "");
    const follower = new LogFollower(path);
    appendFileSync(path, Buffer.from([0xff, 0xfe, 0x0a, 0xe2, 0x82]));
    expect(follower.read()).toEqual(["\ufffd\ufffd"]);
    appendFileSync(path, Buffer.concat([Buffer.from([0xac]), Buffer.from(" and more\n")]));
    expect(follower.read()).toEqual(["€ and more"]);
  });

  it("misses no line of one rotation or of several between two looks", () => {
    const follower = new LogFollower(path);
    const write = (line: string) => appendFileSync(path, `${line} and more\n`);
    const seen: string[] = [];
    const wanted: string[] = [];
    for (let n = 0; n < 60; n++) {
      wanted.push(`line ${n} and more`);
      write(`line ${n}`);
      if (n % 3 === 0) rotateLog(path, { bytes: 1, keep: 9 });
      if (n % 7 === 0) seen.push(...follower.read());
    }
    expect([...seen, ...follower.read()]).toEqual(wanted);
  });

  it("begins anew when the file is emptied", () => {
    writeFileSync(path, "a long line\n");
    const follower = new LogFollower(path);
    writeFileSync(path, "new\n");
    expect([...follower.read(), ...follower.read()]).toEqual(["new"]);
  });

  it("waits for a file that is not there yet", () => {
    const follower = new LogFollower(path);
    expect(follower.read()).toEqual([]);
    writeFileSync(path, "first\n");
    expect(follower.read()).toEqual(["first"]);
  });
});

const at = (second: number) => `2026-01-31T10:00:0${second}.000Z`;
const line = (second: number, fields: object) => JSON.stringify({ level: 30, time: at(second), ...fields });
const plain = (_: string, text: string) => text;

describe("merging", () => {
  it("orders the lines of all files by time; a line without a time stays behind the one before it", () => {
    writeFileSync(`${path}.1`, `${line(1, { msg: "a" })}\n`);
    writeFileSync(path, `${line(4, { msg: "d" })}\n    at somewhere\n${line(6, { msg: "f" })}\n`);
    writeFileSync(
      join(folder, "worker.log"),
      [2, 3, 5, 7].map((s) => `${line(s, { msg: `w${s}` })}\n`).join(""),
    );
    const sources = ["api", "worker", "none"].map((component) => ({ component }));
    const merged = [...mergedRecords(folder, sources)].map(({ fields, line }) => fields?.msg ?? line);
    expect(merged).toEqual(["a", "w2", "w3", "d", "    at somewhere", "w5", "f", "w7"]);
  });

  it("of the last lines reads the ends of files alone, whole lines, and none behind the limit", () => {
    const all = Array.from({ length: 3000 }, (_, n) => line(1, { msg: `line number ${n}` }));
    writeFileSync(path, `${all.join("\n")}\n`);
    writeFileSync(join(folder, "worker.log"), `${line(2, { msg: "w" })}\n${line(3, { msg: "later" })}\n`);
    const limit = Buffer.byteLength(`${line(2, { msg: "w" })}\n`);
    const sources = [{ component: "api" }, { component: "worker", limit }, { component: "none" }];
    const last = (count: number) => lastRecords(folder, sources, count).map((record) => record.line);
    expect(last(3)).toEqual([...all.slice(-2), line(2, { msg: "w" })]);
    const most = last(5000);
    expect(most.length).toBeLessThan(2000);
    expect(most).toEqual([...all.slice(1 - most.length), line(2, { msg: "w" })]);
  });

  it("reads files of many pieces, and ends where it was told to", () => {
    const all = Array.from({ length: 30_000 }, (_, n) => line(1, { msg: `ünï ${n}` }));
    writeFileSync(path, `${all.join("\n")}\n`);
    expect([...mergedRecords(folder, [{ component: "api" }])].map((record) => record.line)).toEqual(all);
    const limit = Buffer.byteLength(`${all[0]}\n`);
    expect([...mergedRecords(folder, [{ component: "api", limit }])]).toHaveLength(1);
  });
});

describe("a line", () => {
  const show = (text: string) => textOf(recordOf("api", text, 0), plain);

  it("is shown with time, component, level, message and fields, its stack below", () => {
    const err = { type: "Error", message: "no luck", stack: "Error: no luck\n    at one\n    at two" };
    const shown = show(
      JSON.stringify({
        level: 50,
        time: at(1),
        name: "x",
        instance: "y",
        request_id: "r-1",
        err,
        msg: "failed",
      }),
    );
    expect(shown).toBe(
      `${at(1)} api              error failed request_id=r-1 err={"type":"Error","message":"no luck"}\n    Error: no luck\n    at one\n    at two`,
    );
  });

  it("of text has its own time, or the time of the line before", () => {
    const redis = recordOf("redis", "77:M 31 Jan 2026 10:00:00.250 * Ready", 0);
    expect(redis.time).toBe(new Date("31 Jan 2026 10:00:00.250").getTime());
    expect(recordOf("redis", "text", 7).time).toBe(7);
    expect(jsonOf(recordOf("redis", "text", 7))).toBe(
      '{"time":"1970-01-01T00:00:00.007Z","name":"redis","msg":"text"}',
    );
    expect(jsonOf(recordOf("api", line(1, {}), 0))).toBe(line(1, {}));
  });

  it("neither moves the cursor nor pretends to be another line, whatever is in it", () => {
    const evil = "\u001b[2J\r\n2026 forged";
    for (const text of [
      evil,
      line(1, { msg: evil }),
      line(1, { [evil]: evil, stack: `${evil}\r` }),
      line(1, { time: evil }),
    ]) {
      const [first = "", ...frames] = show(text).split("\n");
      expect([...first, ...frames.join("")].filter((character) => character < " ")).toEqual([]);
      expect(frames.filter((frame) => !frame.startsWith("    "))).toEqual([]);
    }
    for (const text of ["{", "{}", "[1]", "null", '{"time":{},"level":{}}'])
      expect(show(text)).toContain("api");
  });
});

describe("the lines of a request", () => {
  const chosen = (lines: readonly object[]) => {
    const filter = new RequestFilter("r-1");
    const records = () =>
      lines
        .map((fields) => line(1, fields))
        .filter((text) => filter.mayConcern(text))
        .map((text) => recordOf("api", text, 0));
    for (const record of records()) filter.learn(record);
    return records()
      .filter((record) => filter.isMeant(record))
      .map(({ fields }) => fields?.n);
  };

  it("name it or one of its executions, also before it and of other requests", () => {
    const lines = [
      { n: 1, exec_id: "e-1" },
      { n: 2, exec_id: "e-1", request_id: "r-1" },
      { n: 3, exec_id: "e-2", request_id: "r-2" },
      { n: 4, exec_id: "e-1", request_id: "r-3" },
      { n: 5, msg: "r-1 e-1" },
      { n: 6, request_id: "r-11" },
      { n: 7, request_id: "r-1" },
      { n: 8, job: "e-1" },
      { n: 9, job: "e-1.2.1" },
      { n: 10, job: "e-2" },
    ];
    expect(chosen(lines)).toEqual([1, 2, 4, 7, 8, 9]);
  });

  it("are none of lines without an execution", () => {
    expect(chosen([{ n: 1, request_id: "r-2" }, { n: 2 }])).toEqual([]);
  });
});
