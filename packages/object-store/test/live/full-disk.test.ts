/** A disk that fills up in the midst of a write. Needs root. */
import { newId } from "@svc/contracts";
import { SmallDisk } from "@svc/test-kit/system/small-disk";
import { expect, test } from "vitest";
import { FsObjectStore } from "../../src/index.ts";

const PAGE = 4096;
const attributes = { filename: "a.bin", contentType: "application/octet-stream" };
const owned = { namespace: "t:user:u", readOnly: false };
const limits = { maxBytes: 1e6 };

async function* content(bytes: number) {
  yield Buffer.alloc(bytes, "x");
}

async function storeOn(disk: SmallDisk) {
  return FsObjectStore.create({ root: disk.folder, useGranularityMs: 0 });
}

test("an object whose record has no room is refused, not stored without it", async (context) => {
  const disk = new SmallDisk("size=2m");
  context.onTestFinished(() => disk.remove());
  const store = await storeOn(disk);
  const at = { session: newId(), file: newId() };
  // The content and the first bytes of the record have room.
  disk.fill(PAGE);
  const put = store.put(at, content(PAGE - 20), { ...attributes, ...owned }, limits);
  await expect(put).rejects.toMatchObject({ failure: "unavailable" });
  await expect(store.open(at)).rejects.toMatchObject({ failure: "not_found" });
});

test("a form whose record has no room is refused, and nothing of it shows", async (context) => {
  const disk = new SmallDisk("size=2m");
  context.onTestFinished(() => disk.remove());
  const store = await storeOn(disk);
  const at = { session: newId(), file: newId() };
  await store.stage(at, content(PAGE - 500), attributes, limits);
  disk.fill();
  const namespace = `t:user:${"u".repeat(1000)}`;
  const commit = store.commit(at.session, [at.file], { ...owned, namespace });
  await expect(commit).rejects.toMatchObject({ failure: "unavailable" });
  await expect(store.open(at)).rejects.toMatchObject({ failure: "not_found" });
});
