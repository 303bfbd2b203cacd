import { contentOf, MAX_PICTURE_BYTES, MAX_PICTURES } from "@svc/mcp/run-content";
import { type Service, ServiceRefusal } from "@svc/mcp/service";
import type { Result, ResultFile } from "svc-client";
import { expect, test } from "vitest";

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

const file = (at: number, more: Partial<ResultFile> = {}): ResultFile =>
  ({
    id: `file-${at}`,
    name: `${at}.png`,
    storage_session_id: "session",
    kind: "user",
    size: PNG.length,
    content_type: "image/png",
    ...more,
  }) as ResultFile;

const answer = (files: ResultFile[]) =>
  ({ stdout: "out\n", stderr: "", code: 0, signal: null, message: null, files }) as unknown as Result;

/** Bytes of a file by its id; what is a string is refused with it. */
const serviceWith = (bytesOf: (id: string) => Uint8Array | string): Service =>
  ({
    download: async ({ id }: { id: string }) => {
      const found = bytesOf(id);
      if (typeof found === "string") throw new ServiceRefusal(found);
      return found;
    },
  }) as unknown as Service;

const typesOf = async (files: ResultFile[], bytesOf: (id: string) => Uint8Array | string = () => PNG) =>
  (await contentOf(answer(files), serviceWith(bytesOf), new AbortController().signal)).map(
    ({ type }) => type,
  );

test("so many pictures are shown, and the rest are links", async () => {
  const files = Array.from({ length: MAX_PICTURES + 2 }, (_, at) => file(at));
  const images = Array.from({ length: MAX_PICTURES }, () => "image");
  expect(await typesOf(files)).toEqual(["text", ...images, "resource_link", "resource_link"]);
});

test("pictures together have so many bytes, and a smaller one behind a large one is still shown", async () => {
  const large = file(1, { size: MAX_PICTURE_BYTES - 1 });
  const full = Buffer.concat([PNG, Buffer.alloc(MAX_PICTURE_BYTES - 1 - PNG.length)]);
  expect(await typesOf([large, file(2)], (id) => (id === "file-1" ? full : PNG))).toEqual([
    "text",
    "image",
    "resource_link",
  ]);
  expect(await typesOf([file(0, { size: MAX_PICTURE_BYTES + 1 }), file(2)])).toEqual([
    "text",
    "image",
    "resource_link",
  ]);
});

test("a file that is no picture, and one that cannot be had, are links", async () => {
  expect(await typesOf([file(1)], () => Buffer.from("<svg>"))).toEqual(["text", "resource_link"]);
  expect(await typesOf([file(1)], () => "Too many requests.")).toEqual(["text", "resource_link"]);
});

test("an unchanged input is not returned", async () => {
  expect(await typesOf([file(1, { inherited: true })])).toEqual(["text"]);
});
