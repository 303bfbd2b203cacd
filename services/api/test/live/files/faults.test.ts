import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { UploadedFile } from "@svc/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FileApi, FORM_TYPE, formBytes, partHead, startFileApi } from "../../support/file-api.ts";

/** Much longer than the pauses of a client that is only slow. */
const SILENCE_MS = 2000;

let api: FileApi;
beforeEach(async () => {
  api = await startFileApi({ UPLOAD_PART_TIMEOUT_MS: String(SILENCE_MS) });
});
afterEach(() => api.stop());

const upload = (bytes: Uint8Array, route = "upload") =>
  fetch(`${api.url}/v1/${route}`, {
    method: "POST",
    body: formBytes([{ filename: "a.bin", body: bytes }]),
    headers: { "content-type": FORM_TYPE },
  });

async function uploaded(bytes: Uint8Array): Promise<string> {
  const answer = (await (await upload(bytes)).json()) as { files: UploadedFile[] };
  const [file] = answer.files;
  return `/v1/download/${file?.storage_session_id}/${file?.id}`;
}

/** A request whose body is sent by hand. Collects the answer. */
function rawUpload(): { socket: Socket; answer: () => string } {
  const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => undefined);
  socket.write(
    `POST /v1/upload HTTP/1.1\r\nhost: x\r\ncontent-type: ${FORM_TYPE}\r\ncontent-length: 20000000\r\n\r\n`,
  );
  socket.write(partHead({ filename: "a.bin", body: "" }));
  return { socket, answer: () => answer };
}

async function outcome(metric: string, label: string): Promise<number> {
  const values = (await api.registry.getSingleMetric(metric)?.get())?.values ?? [];
  return values.find(({ labels }) => labels.outcome === label)?.value ?? 0;
}

describe("an upload", () => {
  test("whose client goes away leaves nothing", async () => {
    const { socket } = rawUpload();
    socket.write(randomBytes(5_000_000));
    await expect.poll(() => api.fileServer.storedFiles()).toHaveLength(1);
    socket.destroy();
    await expect.poll(() => api.fileServer.storedFiles()).toEqual([]);
    await expect.poll(() => outcome("svc_file_uploads_total", "aborted")).toBe(1);
  });

  test("whose client falls silent is 408, soon after the limit, and leaves nothing", async () => {
    const { socket, answer } = rawUpload();
    socket.write(randomBytes(100_000));
    const start = performance.now();
    await expect.poll(answer).toContain("upload_timeout");
    expect(answer()).toMatch(/^HTTP\/1\.1 408 /);
    const waitedMs = performance.now() - start;
    expect(waitedMs).toBeGreaterThanOrEqual(SILENCE_MS - 10);
    expect(waitedMs).toBeLessThan(10 * SILENCE_MS);
    expect(await api.fileServer.storedFiles()).toEqual([]);
    socket.destroy();
  });

  test("that is slow but not silent is fine", async () => {
    const body = formBytes([{ filename: "a.bin", body: "0123456789" }]);
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    socket.write(
      `POST /v1/upload HTTP/1.1\r\nhost: x\r\ncontent-type: ${FORM_TYPE}\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    const start = performance.now();
    for (let at = 0; at < body.length; at += 10) {
      socket.write(body.subarray(at, at + 10));
      await delay(250);
    }
    expect(performance.now() - start).toBeGreaterThan(SILENCE_MS);
    await expect.poll(() => answer).toContain('"size":10');
    socket.destroy();
  });

  test("is 503 when the file server is gone, on the batch route 502, and works when it is back", async () => {
    await api.fileServer.kill();
    const single = await upload(randomBytes(25_000_000));
    expect([single.status, ((await single.json()) as { error: string }).error]).toEqual([
      503,
      "storage_unavailable",
    ]);
    const batch = await upload(randomBytes(25_000_000), "upload/batch");
    expect([batch.status, await batch.json()]).toMatchObject([
      502,
      { message: "error", error: "upload_failed", files: [{ error: "storage_unavailable" }] },
    ]);
    await api.fileServer.restart();
    expect((await upload(randomBytes(1_000_000))).status).toBe(200);
  });

  test("in which the file server is killed ends with a clear error and no visible file", async () => {
    const { socket, answer } = rawUpload();
    socket.write(randomBytes(5_000_000));
    await expect.poll(() => api.fileServer.storedFiles()).toHaveLength(1);
    await api.fileServer.kill();
    for (let chunk = 0; chunk < 20; chunk++) {
      socket.write(randomBytes(200_000));
      await delay(10);
    }
    await expect.poll(answer).toContain("storage_unavailable");
    expect(answer()).toMatch(/^HTTP\/1\.1 503 /);
    socket.destroy();
    await api.fileServer.restart();
    expect((await api.fileServer.storedFiles()).filter((path) => path.includes("/sessions/"))).toEqual([]);
  });

  test("fifty at once all arrive whole", async () => {
    await Promise.all(
      Array.from({ length: 50 }, async (_unused, index) => {
        const bytes = randomBytes(150_000 + index);
        const answer = await fetch(api.url + (await uploaded(bytes)));
        expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
      }),
    );
    expect((await api.fileServer.storedFiles()).every((path) => path.includes("/sessions/"))).toBe(true);
  });
});

describe("a download", () => {
  test("of a damaged file is cut, not complete", async () => {
    const path = await uploaded(randomBytes(5_000_000));
    const [stored = ""] = await api.fileServer.storedFiles();
    const file = await open(stored, "r+");
    await file.write(Buffer.from("damage"), 0, 6, 4_900_000);
    await file.close();
    const answer = await fetch(api.url + path);
    expect(answer.status).toBe(200);
    await expect(answer.arrayBuffer()).rejects.toThrow();
    await expect.poll(() => outcome("svc_file_downloads_total", "failed")).toBe(1);
  });

  test("is cut when the file server is killed under it", async () => {
    const path = await uploaded(randomBytes(20_000_000));
    const answer = await fetch(api.url + path);
    const reader = answer.body?.getReader();
    await reader?.read();
    await api.fileServer.kill();
    const drain = async (): Promise<void> => {
      while (!(await reader?.read())?.done);
    };
    await expect(drain()).rejects.toThrow();
    const later = await fetch(api.url + path);
    expect([later.status, ((await later.json()) as { error: string }).error]).toEqual([
      503,
      "storage_unavailable",
    ]);
  });

  test("by a client that does not read holds little, and its leaving ends the read behind it", async () => {
    const path = await uploaded(randomBytes(26_000_000));
    await (await fetch(api.url + path)).arrayBuffer();
    const before = process.memoryUsage().rss;
    const begun: Socket[] = [];
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
      // Its head has come; what is behind it is not read.
      socket.once("readable", () => begun.push(socket));
      return socket;
    });
    await expect.poll(() => begun.length).toBe(20);
    // Time to read on, for an API that would.
    await delay(1500);
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => outcome("svc_file_downloads_total", "aborted")).toBe(20);
  });
});

describe("without Redis", () => {
  test("files are uploaded, read and looked up; deletion is refused", async () => {
    const path = await uploaded(randomBytes(1000));
    await api.redisServer.kill();
    expect((await fetch(api.url + path)).status).toBe(200);
    const later = await uploaded(randomBytes(1000));
    const [, , , storage_session_id = "", id = ""] = later.split("/");
    expect((await api.lookupRecords([{ id, storage_session_id }], "r"))[0]).toMatchObject({ id, size: 1000 });
    const deletion = await fetch(`${api.url}/v1/files/${storage_session_id}/${id}`, { method: "DELETE" });
    expect([deletion.status, ((await deletion.json()) as { error: string }).error]).toEqual([
      503,
      "store_unavailable",
    ]);
  });
});
