/** The main use: a real data file in, a table and a plot out, a change of the data, everything kept byte for byte. */
import type { ExecResponse, UploadedFile } from "@svc/contracts";
import { Api, deletePath, downloadPath, ID, metadataPath, output, refTo } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { expect, test } from "vitest";
import { salesTable } from "./support/sales-table.ts";

const ROWS = 80_000;
const table = salesTable(ROWS);
const system = sharedSystem();
const api = new Api(system.url);
let uploaded: UploadedFile;
let first: ExecResponse;
let second: ExecResponse;

test("a CSV of a few MB is uploaded and described", async () => {
  expect(table.bytes.length).toBeGreaterThan(3_000_000);
  const answer = await api.form("/upload", [{ name: "sales.csv", content: table.bytes, type: "text/csv" }]);
  const body = answer.ok<{ message: string; storage_session_id: string; files: UploadedFile[] }>();
  expect(body.message).toBe("success");
  uploaded = body.files[0] as UploadedFile;
  expect(uploaded).toMatchObject({
    status: "success",
    name: "sales.csv",
    filename: "sales.csv",
    storage_session_id: body.storage_session_id,
    size: table.bytes.length,
    contentType: "text/csv",
    metadata: { "content-type": "text/csv", "original-filename": "sales.csv" },
  });
  expect(uploaded.id).toMatch(ID);
  expect(uploaded.fileId).toBe(uploaded.id);
  expect(new Date(uploaded.lastModified).toISOString()).toBe(uploaded.lastModified);
});

test("pandas and matplotlib make a table on stdout and a picture", async () => {
  first = await api.exec({
    lang: "py",
    files: [refTo(uploaded)],
    code: `
import pandas as pd
import matplotlib.pyplot as plt

sales = pd.read_csv("sales.csv")
totals = sales.groupby("region")["units"].sum().sort_index()
print(len(sales))
print(totals.to_string())
figure, axes = plt.subplots(figsize=(8, 4), dpi=100)
totals.plot.bar(ax=axes)
figure.savefig("totals.png")
`,
  });
  expect(first).toMatchObject({ stderr: "", code: 0, signal: null, message: null, status: null });
  const [count, header, ...rows] = first.stdout.trim().split("\n");
  expect(Number(count)).toBe(ROWS);
  expect(header).toBe("region");
  expect(Object.fromEntries(rows.map((row) => row.split(/\s+(?=\d+$)/)))).toEqual(
    Object.fromEntries(Object.entries(table.units).map(([region, units]) => [region, String(units)])),
  );
  expect(first.files).toEqual([
    {
      id: expect.stringMatching(ID),
      name: "totals.png",
      storage_session_id: first.session_id,
      kind: "user",
      resource_id: expect.any(String),
      size: expect.any(Number),
      content_type: "image/png",
    },
    {
      id: uploaded.id,
      name: "sales.csv",
      storage_session_id: uploaded.storage_session_id,
      kind: "user",
      inherited: true,
      size: expect.any(Number),
      content_type: expect.stringContaining("text/csv"),
    },
  ]);
});

test("the picture is a PNG of the asked size, whole and by parts", async () => {
  const picture = output(first, "totals.png");
  const whole = await api.download(picture);
  expect(whole.status).toBe(200);
  expect(whole.bytes.subarray(0, 8)).toEqual(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  expect(whole.bytes.toString("latin1", 12, 16)).toBe("IHDR");
  expect([whole.bytes.readUInt32BE(16), whole.bytes.readUInt32BE(20)]).toEqual([800, 400]);
  expect(whole.bytes.toString("latin1", whole.bytes.length - 8, whole.bytes.length - 4)).toBe("IEND");
  expect(whole.headers.get("content-length")).toBe(String(whole.bytes.length));
  expect(whole.headers.get("accept-ranges")).toBe("bytes");
  expect(whole.headers.get("x-content-type-options")).toBe("nosniff");
  expect(whole.headers.get("content-disposition")).toBe(
    `attachment; filename="totals.png"; filename*=UTF-8''totals.png`,
  );

  const etag = whole.headers.get("etag") ?? "";
  expect(etag).toMatch(/^"[^"]+"$/);
  const part = await api.download(picture, { range: "bytes=8-15" });
  expect(part.status).toBe(206);
  expect(part.headers.get("content-range")).toBe(`bytes 8-15/${whole.bytes.length}`);
  expect(part.bytes).toEqual(whole.bytes.subarray(8, 16));
  const tail = await api.download(picture, { range: "bytes=-12", "if-range": etag });
  expect(tail.bytes).toEqual(whole.bytes.subarray(-12));
  expect((await api.download(picture, { range: "bytes=0-3", "if-range": '"other"' })).status).toBe(200);

  const beyond = await api.download(picture, { range: `bytes=${whole.bytes.length}-` });
  expect(beyond.status).toBe(416);
  expect(beyond.headers.get("content-range")).toBe(`bytes */${whole.bytes.length}`);
  expect(beyond.refusal.error).toBe("range_not_satisfiable");

  const unchanged = await api.download(picture, { "if-none-match": etag });
  expect([unchanged.status, unchanged.bytes.length]).toEqual([304, 0]);
  const head = await api.send("HEAD", downloadPath(picture));
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  for (const name of ["content-length", "etag", "last-modified", "content-type", "content-disposition"]) {
    expect(head.headers.get(name), name).toBe(whole.headers.get(name));
  }
});

test("a program that changes the CSV makes a new file; the old one stays", async () => {
  second = await api.exec({
    lang: "py",
    files: [refTo(uploaded)],
    code: `
data = open("sales.csv", "rb").read()
open("sales.csv", "wb").write(data + b"north,1,0.5\\r\\n")
`,
  });
  const changed = output(second, "sales.csv");
  expect(second.files).toHaveLength(1);
  expect(changed.modified_from).toEqual({ id: uploaded.id, storage_session_id: uploaded.storage_session_id });
  expect(changed.inherited).toBeUndefined();
  expect(changed.id).not.toBe(uploaded.id);
  expect(changed.storage_session_id).toBe(second.session_id);
  expect(await api.bytes(uploaded)).toEqual(Buffer.from(table.bytes));
  expect(await api.bytes(changed)).toEqual(Buffer.concat([table.bytes, Buffer.from("north,1,0.5\r\n")]));
});

test("a third program reads the old and the new file side by side", async () => {
  const answer = await api.exec({
    lang: "bash",
    files: [refTo(uploaded, "old/sales.csv"), refTo(output(second, "sales.csv"), "new/sales.csv")],
    code: "wc -c < old/sales.csv; wc -c < new/sales.csv; diff old/sales.csv new/sales.csv | head -2",
  });
  const size = table.bytes.length;
  expect(answer.stdout).toBe(`${size}\n${size + 13}\n${ROWS + 1}a${ROWS + 2}\n> north,1,0.5\r\n`);
  expect(answer.files.map(({ name, inherited }) => [name, inherited])).toEqual([
    ["old/sales.csv", true],
    ["new/sales.csv", true],
  ]);
});

test("metadata and every detail of the list describe the file", async () => {
  const { id, storage_session_id, size, etag, contentType, lastModified, metadata } = uploaded;
  const path = `${storage_session_id}/${id}`;
  expect((await api.send("GET", metadataPath(uploaded))).ok()).toEqual({
    lastModified,
    size,
    etag,
    contentType,
    name: path,
    originalFilename: "sales.csv",
    id,
    storage_session_id,
    readOnly: false,
  });
  const list = async (query: string) => (await api.send("GET", `/files/${storage_session_id}${query}`)).ok();
  const summary = { name: path, size, lastModified, etag };
  const full = { ...summary, id, storage_session_id, resource_id: expect.any(String), contentType, metadata };
  const normalized = { id, name: "sales.csv", storage_session_id, size, contentType, lastModified };
  expect(await list("")).toEqual([path]);
  expect(await list("?detail=simple")).toEqual([path]);
  expect(await list("?detail=summary")).toEqual([summary]);
  expect(await list("?detail=full")).toEqual([full]);
  expect(await list("?detail=normalized")).toEqual([normalized]);
  expect((await api.send("GET", `/files/${storage_session_id}?detail=all`)).refusal.error).toBe(
    "invalid_request",
  );
});

test("a deleted file is gone for downloads and for programs", async () => {
  const deleted = await api.send("DELETE", deletePath(uploaded));
  expect(deleted.ok()).toEqual({
    message: "File deleted successfully",
    session_id: uploaded.storage_session_id,
    fileId: uploaded.id,
  });
  for (const [method, path] of [
    ["DELETE", deletePath(uploaded)],
    ["GET", downloadPath(uploaded)],
    ["GET", metadataPath(uploaded)],
  ] as const) {
    const answer = await api.send(method, path);
    expect([answer.status, answer.refusal.error]).toEqual([404, "file_not_found"]);
  }
  const refused = await api.tryExec({ lang: "bash", code: "true", files: [refTo(uploaded)] });
  expect([refused.status, refused.refusal.error]).toEqual([403, "file_reference_denied"]);
  expect(refused.refusal.details?.[0]?.path).toContain("files[0]");
  expect(await api.bytes(output(second, "sales.csv"))).toHaveLength(table.bytes.length + 13);
});
