/** The page at / and /docs: nobody is asked who he is, so it costs little to send and nothing to send again. */
import { createHash } from "node:crypto";
import { request } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takesGzip } from "../../src/openapi/served-page.ts";
import { type IdentityApi, startIdentityApi } from "../support/identity-api.ts";

let api: IdentityApi;
beforeAll(async () => {
  api = await startIdentityApi();
});
afterAll(() => api?.stop());

interface Page {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: Buffer;
}

/** Headers as they are: `fetch` would add its own and unpack. */
function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Page> {
  return new Promise((resolve, reject) => {
    request(`${api.url}${path}`, { method, headers, agent: false }, (answer) => {
      buffer(answer).then(
        (body) => resolve({ status: answer.statusCode, headers: answer.headers, body }),
        reject,
      );
    })
      .once("error", reject)
      .end();
  });
}

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

describe.each(["/", "/docs"])("%s", (path) => {
  it("is sent whole, or compressed to a fifth where the client takes that", async () => {
    const plain = await get(path);
    const packed = await get(path, { "accept-encoding": "br, gzip" });
    expect([plain.status, packed.status]).toEqual([200, 200]);
    expect(plain.headers).not.toHaveProperty("content-encoding");
    expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
    expect(plain.headers).toMatchObject({
      vary: "accept-encoding",
      "content-type": "text/html; charset=utf-8",
      "cache-control": "public, max-age=300",
      etag: packed.headers.etag,
    });
    expect(digest(gunzipSync(packed.body))).toBe(digest(plain.body));
    expect(packed.body.length).toBeLessThan(plain.body.length / 5);
    for (const { headers, body } of [plain, packed])
      expect(headers["content-length"]).toBe(String(body.length));
  });

  it("is not sent again to a client that has it", async () => {
    const etag = String((await get(path)).headers.etag);
    const strong = etag.replace("W/", "");
    for (const known of [etag, strong, `"other", ${etag}`, "*"]) {
      const answer = await get(path, { "if-none-match": known, "accept-encoding": "gzip" });
      expect([answer.status, answer.body.length]).toEqual([304, 0]);
      expect(answer.headers).toMatchObject({ etag, "cache-control": "public, max-age=300" });
    }
    for (const other of ['"other"', etag.slice(0, -2), ""]) {
      expect((await get(path, { "if-none-match": other })).status).toBe(200);
    }
  });

  it("has its headers alone for HEAD", async () => {
    const [{ headers }, head] = [await get(path), await get(path, {}, "HEAD")];
    const { date, "x-request-id": _, ...stable } = head.headers;
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(headers).toMatchObject(stable);
  });
});

it("clients say in many ways whether they take gzip", () => {
  for (const header of ["gzip", "br;q=1, GZIP;q=0.5", "deflate , gzip ; q=1.0"]) {
    expect(takesGzip(header), header).toBe(true);
  }
  for (const header of [undefined, "", "br", "gzip;q=0", "gzip; q=0.000", "identity, x-gzip"]) {
    expect(takesGzip(header), header).toBe(false);
  }
});
