import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { InputCache } from "@svc/runner/inputs/cache";
import { NotGenuine } from "@svc/runner/inputs/sealed-file";
import { copiesOf } from "@svc/test-kit/components/input-copies";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";

const MIB = 2 ** 20;
const newKey = () => randomBytes(32).toString("base64url");
const made: InputCache[] = [];
let problems: unknown[] = [];

function cacheOf(maxBytes: number, now?: () => number): InputCache {
  const onProblem = (error: unknown) => problems.push(error);
  const cache = new InputCache({ maxBytes, onProblem, ...(now && { now }) });
  made.push(cache);
  return cache;
}

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cache of made.splice(0)) cache.close();
  await expect.poll(() => copiesOf("self")).toEqual([]);
  problems = [];
});

/** Whether a copy was made. */
async function keep(cache: InputCache, key: string, content: Buffer, etag = "tag"): Promise<boolean> {
  const recording = await cache.record(key, etag, content.length);
  if (recording === undefined) return false;
  for (let at = 0; at < content.length; at += 70_000)
    await recording.write(content.subarray(at, at + 70_000));
  await recording.keep();
  await recording.end();
  return true;
}

async function read(cache: InputCache, key: string): Promise<Buffer | undefined> {
  const copy = cache.find(key);
  if (copy === undefined) return undefined;
  try {
    return await buffer(copy.read());
  } finally {
    copy.release();
  }
}

function has(cache: InputCache, key: string): boolean {
  const copy = cache.find(key);
  copy?.release();
  return copy !== undefined;
}

/** The file of the only copy there is. */
function onlyFile(): string {
  const [path, ...others] = copiesOf("self");
  if (path === undefined || others.length > 0) throw new Error("not one copy");
  return path;
}

describe("a copy", () => {
  it("has the bytes and the tag that it was made with, as often as it is read", async () => {
    const cache = cacheOf(8 * MIB);
    for (const size of [1, 262_144, 262_145, 3 * MIB]) {
      const [key, content] = [newKey(), randomBytes(size)];
      expect(await keep(cache, key, content, `tag of ${size}`)).toBe(true);
      const copy = cache.find(key);
      expect([copy?.etag, copy?.size]).toEqual([`tag of ${size}`, size]);
      copy?.release();
      for (let time = 0; time < 2; time++) expect((await read(cache, key))?.equals(content)).toBe(true);
    }
  });

  it("is found by its key alone, and lies on the disk without name, sealed and for its user only", async () => {
    const cache = cacheOf(MIB);
    const content = Buffer.alloc(100_000, "secret ");
    await keep(cache, newKey(), content);
    expect(await read(cache, newKey())).toBeUndefined();
    const path = onlyFile();
    expect(readFileSync(path).includes("secret")).toBe(false);
    const { mode, nlink, size } = statSync(path);
    expect({ mode: mode & 0o777, nlink, size }).toEqual({ mode: 0o600, nlink: 0, size: content.length });
  });

  it.each([
    [
      "changed",
      (path: string, bytes: Buffer) => writeFileSync(path, bytes.fill(bytes.readUInt8(7) ^ 1, 7, 8)),
    ],
    ["cut off", (path: string) => truncateSync(path, 99_999)],
    ["empty", (path: string) => truncateSync(path, 0)],
    ["replaced by the content itself", (path: string) => writeFileSync(path, Buffer.alloc(100_000, "x"))],
  ])("that was %s does not pass for genuine", async (_what, spoil) => {
    const cache = cacheOf(MIB);
    const key = newKey();
    await keep(cache, key, Buffer.alloc(100_000, "x"));
    const path = onlyFile();
    spoil(path, readFileSync(path));
    await expect(read(cache, key)).rejects.toThrow(NotGenuine);
    const copy = cache.find(key);
    copy?.drop();
    expect(cache.find(key)).toBeUndefined();
    expect(cache.bytes).toBe(100_000);
    copy?.release();
    expect(cache.bytes).toBe(0);
  });

  it("is replaced by a newer one, and goes when nobody used it for a quarter of an hour", async () => {
    let now = 0;
    const cache = cacheOf(MIB, () => now);
    const [used, unused] = [newKey(), newKey()];
    for (const key of [used, unused]) await keep(cache, key, Buffer.from("first"));
    await keep(cache, used, Buffer.from("second!"), "new tag");
    expect((await read(cache, used))?.toString()).toBe("second!");
    now = 14 * 60_000;
    cache.find(used)?.release();
    now = 16 * 60_000;
    cache.sweep();
    expect([used, unused].map((key) => has(cache, key))).toEqual([true, false]);
    expect(cache.bytes).toBe(7);
  });
});

describe("what cannot be copied", () => {
  it("is what is larger than the cache, is being copied already, or has other bytes than announced", async () => {
    const cache = cacheOf(1000);
    expect(await keep(cache, newKey(), randomBytes(1001))).toBe(false);
    const key = newKey();
    const first = await cache.record(key, "tag", 10);
    expect(await cache.record(key, "tag", 10)).toBeUndefined();
    await first?.write(Buffer.alloc(9));
    await first?.keep();
    await first?.end();
    expect(cache.find(key)).toBeUndefined();
    expect(cache.bytes).toBe(0);
  });

  it("leaves nothing when it is given up", async () => {
    const cache = cacheOf(MIB);
    const recording = await cache.record(newKey(), "tag", 600_000);
    await recording?.write(randomBytes(300_000));
    expect(cache.bytes).toBe(600_000);
    await recording?.end();
    await recording?.end();
    expect([cache.bytes, copiesOf("self")]).toEqual([0, []]);
  });

  it("is told where there is no folder, and nothing is made", async () => {
    const cache = cacheOf(MIB);
    vi.stubEnv("TMPDIR", "/proc/nowhere");
    expect(await keep(cache, newKey(), randomBytes(10))).toBe(false);
    expect(problems).toEqual([expect.objectContaining({ code: "ENOENT" })]);
    expect(cache.bytes).toBe(0);
    expect(existsSync("/proc/nowhere")).toBe(false);
  });
});

describe("room", () => {
  it("is made by those that were not used for longest, but not by those in use", async () => {
    const cache = cacheOf(300);
    const [a, b, c, d] = [newKey(), newKey(), newKey(), newKey()];
    for (const key of [a, b, c]) await keep(cache, key, randomBytes(100));
    const held = cache.find(a);
    cache.find(b)?.release();
    held?.release();
    expect(await keep(cache, d, randomBytes(100))).toBe(true);
    const found = () => [a, b, c, d].map((key) => has(cache, key));
    expect(found()).toEqual([true, true, false, true]);
    const all = [a, b, d].map((key) => cache.find(key));
    expect(await keep(cache, c, randomBytes(1))).toBe(false);
    for (const copy of all) copy?.release();
    expect(await keep(cache, c, randomBytes(300))).toBe(true);
    expect(found()).toEqual([false, false, true, false]);
  });

  it("is never exceeded, and what is found is always what was kept last", async () => {
    const keys = Array.from({ length: 6 }, newKey);
    const step = fc.record({
      key: fc.constantFrom(...keys),
      what: fc.constantFrom("keep", "read", "hold", "release"),
      size: fc.integer({ min: 1, max: 500 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const cache = cacheOf(1000);
        const kept = new Map<string, Buffer>();
        const held: { content: Buffer | undefined; copy: ReturnType<InputCache["find"]> }[] = [];
        for (const { key, what, size } of steps) {
          if (what === "keep") {
            const content = randomBytes(size);
            if (await keep(cache, key, content)) kept.set(key, content);
          } else if (what === "read") {
            const content = await read(cache, key);
            if (content !== undefined) expect(kept.get(key)?.equals(content)).toBe(true);
          } else if (what === "hold") held.push({ content: kept.get(key), copy: cache.find(key) });
          else held.shift()?.copy?.release();
          expect(cache.bytes).toBeLessThanOrEqual(1000);
        }
        for (const { content, copy } of held) {
          if (copy === undefined) continue;
          expect(content?.equals(await buffer(copy.read()))).toBe(true);
          copy.release();
        }
        cache.close();
        expect(cache.bytes).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  it("is for 256 copies at most", async () => {
    const cache = cacheOf(MIB);
    for (let count = 0; count < 260; count++) await keep(cache, newKey(), Buffer.from("x"));
    expect(cache.bytes).toBe(256);
    await expect.poll(() => copiesOf("self").length).toBe(256);
  });
});
