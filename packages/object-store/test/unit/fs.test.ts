import { watch } from "node:fs";
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { newId } from "@svc/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FsObjectStore, StoreError } from "../../src/index.ts";
import { objectStoreConformance } from "../support/conformance.ts";
import { collect } from "../support/content.ts";

async function filesBelow(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

objectStoreConformance("the directory driver", async () => {
  const root = await mkdtemp(join(tmpdir(), "svc-test-store-"));
  return {
    store: await FsObjectStore.create({ root, useGranularityMs: 0 }),
    countStored: async () => (await filesBelow(root)).length,
    destroy: () => rm(root, { recursive: true }),
  };
});

describe("the check of a directory store", () => {
  let root: string;
  let store: FsObjectStore;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-test-store-"));
    store = await FsObjectStore.create({ root, useGranularityMs: 0 });
  });
  afterEach(() => rm(root, { recursive: true }));

  test("writes once for many questions", async () => {
    const written = new Set<string | null>();
    const watcher = watch(join(root, "incoming"), (_event, name) => written.add(name));
    await Promise.all(Array.from({ length: 100 }, () => store.check()));
    await store.check();
    await writeFile(join(root, "incoming", "last"), "");
    await expect.poll(() => written.has("last")).toBe(true);
    watcher.close();
    expect(written.size - 1).toBeLessThanOrEqual(2);
  });

  test("asks a store that failed again at once, and one that was good soon", async () => {
    const failure = () =>
      store.check().then(
        () => undefined,
        (error: StoreError) => error.failure,
      );
    await rm(join(root, "incoming"), { recursive: true });
    expect(await failure()).toBe("not_found");
    await mkdir(join(root, "incoming"));
    expect(await failure()).toBeUndefined();
    await rm(join(root, "incoming"), { recursive: true });
    await expect.poll(failure, { timeout: 5000 }).toBe("not_found");
  });
});

describe("a directory store whose files were damaged", () => {
  let root: string;
  let store: FsObjectStore;
  const at = { session: newId(), file: newId() };
  const bytes = Buffer.alloc(700_000, "svc");
  let path: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-test-store-"));
    store = await FsObjectStore.create({ root, useGranularityMs: 60_000 });
    const attributes = { namespace: "t:user:u", filename: "a", contentType: "a/b", readOnly: false };
    await store.put(
      at,
      (async function* () {
        yield Buffer.from(bytes);
      })(),
      attributes,
      { maxBytes: 1e9 },
    );
    path = join(root, "sessions", at.session, at.file);
  });
  afterEach(() => rm(root, { recursive: true }));

  const readAll = async (): Promise<{ received: number; error: unknown }> => {
    let received = 0;
    try {
      for await (const chunk of (await store.open(at)).read()) received += (chunk as Buffer).length;
      return { received, error: undefined };
    } catch (error) {
      return { received, error };
    }
  };

  for (const position of [0, 300_000, 699_999]) {
    test(`a changed byte at ${position} ends the read with an error before its last byte`, async () => {
      const file = await open(path, "r+");
      await file.write(Buffer.from([0]), 0, 1, position);
      await file.close();
      const { received, error } = await readAll();
      expect(error).toBeInstanceOf(StoreError);
      expect((error as StoreError).failure).toBe("damaged");
      expect(received).toBeLessThan(bytes.length);
    });
  }

  test("a file that was cut, grown or emptied is damaged, and lists leave it out", async () => {
    const { size } = await stat(path);
    for (const length of [size - 1, size - 13, size - 400, 600_000, 11, 0, size + 1]) {
      await truncate(path, length);
      const { error } = await readAll();
      expect((error as StoreError).failure).toBe("damaged");
    }
    expect(await store.list(at.session, 10)).toEqual([]);
  });

  test("an object file under another name is damaged, not another object", async () => {
    const other = newId();
    await writeFile(join(root, "sessions", at.session, other), await buffer(await openRaw(path)));
    await expect(store.open({ session: at.session, file: other })).rejects.toMatchObject({
      failure: "damaged",
    });
  });

  test("a length in the footer that points nowhere is damaged, not read", async () => {
    const { size } = await stat(path);
    const file = await open(path, "r+");
    const length = Buffer.alloc(4);
    length.writeUInt32LE(0xffffffff);
    await file.write(length, 0, 4, size - 12);
    await file.close();
    expect(((await readAll()).error as StoreError).failure).toBe("damaged");
  });

  test("bytes that vanish during a read end it with an error", async () => {
    const object = await store.open(at);
    await truncate(path, 300_000);
    await expect(buffer(object.read())).rejects.toMatchObject({ failure: "damaged" });
  });

  test("the files are readable by their owner only", async () => {
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(root, "sessions"))).mode & 0o777).toBe(0o700);
  });

  test("a use is noted at most once per granularity", async () => {
    const old = new Date(Date.now() - 3_600_000);
    await utimes(path, old, old);
    const noteUse = async (): Promise<number> => {
      const object = await store.open(at);
      await object.noteUse();
      await object.close();
      return (await stat(path)).mtimeMs;
    };
    const first = await noteUse();
    expect(Date.now() - first).toBeLessThan(10_000);
    expect(await noteUse()).toBe(first);
  });

  test("a session that cannot be opened is told of, and keeps no other from being walked", async () => {
    // Whatever order the directory has, one of these comes before the object.
    const broken = Array.from({ length: 20 }, () => newId());
    for (const session of broken) await symlink(session, join(root, "sessions", session));
    const time = new Date(Date.now() + 60_000);
    const all = async () => true;
    const walks = [
      (told: unknown[]) => store.addresses((error) => void told.push(error)),
      (told: unknown[]) => store.unusedSince(time, all, (error) => void told.push(error)),
    ];
    for (const walk of walks) {
      const told: unknown[] = [];
      expect(await collect(walk(told))).toEqual([at]);
      expect(told).toHaveLength(broken.length);
      for (const error of told) expect(error).toMatchObject({ name: "StoreError", failure: "unavailable" });
    }
    for (const walk of [store.addresses(), store.unusedSince(time)])
      await expect(collect(walk)).rejects.toMatchObject({ failure: "unavailable" });
  });

  test("a leftover that cannot be removed is told of, and keeps no other", async () => {
    const old = new Date(0);
    for (const directory of ["incoming", "pending"].map((name) => join(root, name))) {
      // Whatever order the directory has, one of these comes before the other leftover.
      for (const name of Array.from({ length: 20 }, () => newId()))
        await symlink(name, join(directory, name));
      const leftover = join(directory, newId());
      await mkdir(leftover);
      await utimes(leftover, old, old);
    }
    const told: unknown[] = [];
    const limit = new Date(Date.now() - 60_000);
    expect(await store.removeLeftovers(limit, (error) => void told.push(error))).toBe(2);
    expect(told).toHaveLength(40);
    for (const error of told) expect(error).toMatchObject({ name: "StoreError", failure: "unavailable" });
    await expect(store.removeLeftovers(limit)).rejects.toMatchObject({ failure: "unavailable" });
  });

  test("leftovers of a crash are removed when old: half written files and unfinished sessions", async () => {
    const half = join(root, "incoming", "half");
    await writeFile(half, "x");
    const staged = { session: newId(), file: newId() };
    const pending = { filename: "a", contentType: "a/b" };
    await store.stage(
      staged,
      (async function* () {
        yield Buffer.from(bytes);
      })(),
      pending,
      { maxBytes: 1e9 },
    );
    const old = new Date(Date.now() - 7 * 3_600_000);
    await utimes(half, old, old);
    const limit = new Date(Date.now() - 6 * 3_600_000);
    expect(await store.removeLeftovers(limit)).toBe(1);
    await utimes(join(root, "pending", staged.session, staged.file), old, old);
    await utimes(join(root, "pending", staged.session), old, old);
    expect(await store.removeLeftovers(limit)).toBe(1);
    expect(await filesBelow(root)).toEqual([path]);
  });
});

async function openRaw(path: string): Promise<NodeJS.ReadableStream & AsyncIterable<Buffer>> {
  return (await open(path, "r")).createReadStream() as never;
}
