/** Uploads through the public API: what is kept, what is refused, and that a refused or broken upload leaves nothing. */
import { type Dirent, readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { UploadedFile } from "@svc/contracts";
import {
  Api,
  type BatchAnswer,
  type FormPart,
  ID,
  metadataPath,
  type UploadAnswer,
} from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const MAX_FILE = 25 * 1024 * 1024;
let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, UPLOAD_PART_TIMEOUT_MS: "1500" } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const file = (name: string, content: FormPart["content"] = name): FormPart => ({ name, content });
const TOO_LARGE = Buffer.alloc(MAX_FILE + 1, "x");

/** Every file that storage holds, visible or not. */
function stored(folder = join(system.instance.dataDir, "objects")): string[] {
  return (readdirSync(folder, { withFileTypes: true }) as Dirent[]).flatMap((entry) =>
    entry.isDirectory() ? stored(join(folder, entry.name)) : [entry.name],
  );
}

async function leavesNothing(act: () => Promise<void>): Promise<void> {
  const before = stored().sort();
  await act();
  const added = () => stored().filter((name) => !before.includes(name));
  await until(() => added().length === 0, 10_000, added);
}

describe("one upload", () => {
  test("of the largest size and of no bytes", async () => {
    const largest = Buffer.alloc(MAX_FILE, "0123456789");
    const files = await api.upload({ "largest.bin": largest, "empty.bin": "" });
    expect(files.map(({ size }) => size)).toEqual([MAX_FILE, 0]);
    expect((await api.bytes(files[0] as UploadedFile)).equals(largest)).toBe(true);
    expect(await api.bytes(files[1] as UploadedFile)).toHaveLength(0);
  });

  test("of the same file twice makes two files", async () => {
    const [one, two] = [await api.stage("a.txt", "a"), await api.stage("a.txt", "a")];
    expect(one.id).not.toBe(two.id);
    expect(one.storage_session_id).not.toBe(two.storage_session_id);
  });

  test.each<[name: string, parts: FormPart[], status: number, code: string]>([
    ["no file", [{ field: "kind", content: "user" }], 400, "no_files"],
    ["a file that is too large", [file("a.txt"), file("b.bin", TOO_LARGE)], 413, "file_too_large"],
    ["a name that climbs", [file("a.txt"), file("../b.txt")], 400, "invalid_file_name"],
    ["an absolute name", [file("/etc/passwd")], 400, "invalid_file_name"],
    ["a name that is too deep", [file("1/2/3/4/5/6/7/8/9/10/11")], 400, "invalid_file_name"],
    ["an unknown kind", [file("a.txt"), { field: "kind", content: "group" }], 400, "invalid_request"],
    ["an agent without id", [file("a.txt"), { field: "kind", content: "agent" }], 400, "invalid_request"],
    [
      "a skill without version",
      [{ field: "kind", content: "skill" }, { field: "id", content: "s" }, file("a")],
      400,
      "invalid_request",
    ],
    ["a version for a user", [file("a.txt"), { field: "version", content: "1" }], 400, "invalid_request"],
    [
      "text as version",
      [
        { field: "kind", content: "skill" },
        { field: "id", content: "s" },
        { field: "version", content: "new" },
        file("a"),
      ],
      400,
      "invalid_request",
    ],
    ["201 files", Array.from({ length: 201 }, (_, at) => file(`f${at}`)), 400, "too_many_files"],
  ])("%s: refused, nothing stays", async (_name, parts, status, code) => {
    await leavesNothing(async () => {
      const answer = await api.form("/upload", parts);
      expect([answer.status, answer.refusal.error]).toEqual([status, code]);
    });
  });

  test("an empty version counts as absent, unknown fields are ignored", async () => {
    const fields = { kind: "user", version: "", id: "ignored", entity_id: "legacy", other: "x" };
    expect(await api.upload({ "a.txt": "a" }, fields)).toHaveLength(1);
  });

  test.each(["application/json", "text/plain", "multipart/form-data"])(
    "the type %s is refused",
    async (type) => {
      const answer = await api.send("POST", "/upload", { headers: { "content-type": type }, body: "{}" });
      expect(answer.status).toBe(400);
      expect(["invalid_content_type", "invalid_multipart"]).toContain(answer.refusal.error);
    },
  );
});

describe("a batch", () => {
  test("that succeeds counts its files", async () => {
    const answer = await api.form("/upload/batch", [file("a.txt"), file("b.txt")]);
    const body = answer.ok<BatchAnswer>();
    expect(body).toMatchObject({ message: "success", succeeded: 2, failed: 0 });
    expect(body.storage_session_id).toMatch(ID);
  });

  test("keeps the good files and tells of the bad ones in their places", async () => {
    const parts = [file("a.txt"), file("../b.txt"), file("c.bin", TOO_LARGE), file("d.txt")];
    const body = (await api.form("/upload/batch", parts)).ok<BatchAnswer>();
    expect(body).toMatchObject({ message: "partial_success", succeeded: 2, failed: 2 });
    expect(body.files.map(({ status, filename }) => [status, filename])).toEqual([
      ["success", "a.txt"],
      ["error", "../b.txt"],
      ["error", "c.bin"],
      ["success", "d.txt"],
    ]);
    const [first] = body.files as UploadedFile[];
    expect((await api.bytes(first as UploadedFile)).toString()).toBe("a.txt");
  });

  test("with 201 files keeps 200", async () => {
    const parts = Array.from({ length: 201 }, (_, at) => file(`f${at}`));
    const body = (await api.form("/upload/batch", parts)).ok<BatchAnswer>();
    expect(body).toMatchObject({ succeeded: 200, failed: 1, filesLimitReached: true, maxFiles: 200 });
  });

  test.each<[name: string, parts: FormPart[], status: number]>([
    ["bad names only", [file("../a"), file("/b")], 400],
    ["only files that are too large", [file("a.bin", TOO_LARGE), file("b.bin", TOO_LARGE)], 413],
    ["both", [file("../a"), file("b.bin", TOO_LARGE)], 400],
  ])("of %s fails as a whole", async (_name, parts, status) => {
    await leavesNothing(async () => {
      const answer = await api.form("/upload/batch", parts);
      expect(answer.status).toBe(status);
      expect(answer.json()).toMatchObject({
        message: "error",
        error: "upload_failed",
        request_id: answer.headers.get("x-request-id"),
        storage_session_id: expect.stringMatching(ID),
        succeeded: 0,
        failed: 2,
        details: expect.stringMatching(/\w+/),
      });
    });
  });

  test("without a file, or with a bad field, is refused like an upload", async () => {
    expect((await api.form("/upload/batch", [{ field: "x", content: "y" }])).refusal.error).toBe("no_files");
    const bad = await api.form("/upload/batch", [file("a"), { field: "kind", content: "group" }]);
    expect([bad.status, bad.refusal.error]).toEqual([400, "invalid_request"]);
  });
});

describe("a client", () => {
  const HEAD = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n`;

  /** Starts an upload and stops in the middle of the file. */
  function begin() {
    const headers = { "content-type": "multipart/form-data; boundary=b" };
    const call = request(`${api.url}/upload`, { method: "POST", headers, agent: false });
    const answer = new Promise<number>((resolve, reject) => {
      call.once("response", (response) => resolve(response.resume().statusCode ?? 0)).once("error", reject);
    });
    answer.catch(() => undefined);
    call.write(HEAD + "x".repeat(3_000_000));
    return { call, answer };
  }

  test("that leaves in the middle of a file leaves nothing", async () => {
    const before = stored().length;
    await leavesNothing(async () => {
      const { call } = begin();
      await until(() => stored().length > before, 10_000);
      call.destroy();
    });
  });

  test("that falls silent is told so", async () => {
    await leavesNothing(async () => {
      expect(await begin().answer).toBe(408);
    });
  });

  test("sees its files from the moment of the answer, 30 uploads at a time", async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) => api.form("/upload", [file(`f${at}`)])),
    );
    for (const answer of answers) {
      const [one] = answer.ok<UploadAnswer>().files as [UploadedFile];
      expect((await api.send("GET", metadataPath(one))).status).toBe(200);
    }
  });
});
