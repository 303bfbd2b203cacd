/**
 * The runner's cache of large inputs, with eviction of the least recently used. It is bounded in bytes, files and idle time. A copy is found and
 * opened only with its object's key, which comes with a grant and is not kept here: the key's hash finds the copy, and the seal is derived from the
 * key. The cache is advisory: before a copy is used, storage has confirmed that the object is there, unchanged, and readable by the caller. Without
 * room, rights or disk there are no copies, and nothing fails.
 */
import { createHash, hkdfSync } from "node:crypto";
import { type Seal, type SealedFile, SealedFileWriter } from "./sealed-file.ts";

/** Each copy is an open file. */
const MAX_FILES = 256;
/** A copy that was not used for this long is removed: copies of deleted objects should not stay. */
const IDLE_MS = 15 * 60_000;

interface Entry {
  id: string;
  etag: string;
  size: number;
  file: SealedFile;
  users: number;
  usedAt: number;
}

/** A copy that stays readable until it is released. */
export interface HeldCopy {
  etag: string;
  size: number;
  read: () => AsyncGenerator<Buffer>;
  release: () => void;
  /** Removes a copy that failed its check: nobody finds it any more. */
  drop: () => void;
}

/** A copy that is being made. Its methods never reject: a copy that cannot be made is dropped. */
export interface Recording {
  /** Calls must not overlap. */
  write: (bytes: Buffer) => Promise<void>;
  /** Keeps the copy: all bytes were written and are right. */
  keep: () => Promise<void>;
  /** Drops the copy, unless `keep` succeeded before. */
  end: () => Promise<void>;
}

export interface CacheOptions {
  maxBytes: number;
  onProblem: (error: unknown) => void;
  now?: () => number;
}

export class InputCache {
  readonly #options: CacheOptions;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #recorded = new Set<string>();
  #bytes = 0;
  #files = 0;
  readonly #sweeper: NodeJS.Timeout;

  constructor(options: CacheOptions) {
    this.#options = options;
    this.#sweeper = setInterval(() => this.sweep(), IDLE_MS / 10).unref();
  }

  /** Bytes on disk, and reserved for copies that are being made. */
  get bytes(): number {
    return this.#bytes;
  }

  find(key: string): HeldCopy | undefined {
    const entry = this.#entries.get(idOf(key));
    if (entry === undefined) return undefined;
    this.#entries.delete(entry.id);
    this.#entries.set(entry.id, entry);
    entry.users++;
    entry.usedAt = this.#now();
    let held = true;
    return {
      etag: entry.etag,
      size: entry.size,
      read: () => entry.file.read(sealOf(key, entry.etag)),
      release: () => {
        if (!held) return;
        held = false;
        entry.users--;
        if (this.#entries.get(entry.id) !== entry) this.#closeUnused(entry);
      },
      drop: () => this.#remove(entry),
    };
  }

  /** Begins a copy. Undefined: there is no room for it, or it is being made already. */
  async record(key: string, etag: string, size: number): Promise<Recording | undefined> {
    const id = idOf(key);
    if (this.#recorded.has(id) || !this.#makeRoom(size)) return undefined;
    this.#recorded.add(id);
    this.#bytes += size;
    this.#files++;
    const giveUp = () => {
      this.#recorded.delete(id);
      this.#forget(size);
    };
    try {
      return this.#recording(await SealedFileWriter.open(sealOf(key, etag)), { id, etag, size }, giveUp);
    } catch (error) {
      giveUp();
      this.#options.onProblem(error);
      return undefined;
    }
  }

  #recording(
    writer: SealedFileWriter,
    { id, etag, size }: Pick<Entry, "id" | "etag" | "size">,
    giveUp: () => void,
  ): Recording {
    let state: "open" | "broken" | "over" = "open";
    const attempt = async (step: () => Promise<void>) => {
      if (state !== "open") return;
      try {
        await step();
      } catch (error) {
        state = "broken";
        this.#options.onProblem(error);
      }
    };
    return {
      write: (bytes) => attempt(() => writer.write(bytes)),
      keep: () =>
        attempt(async () => {
          const file = await writer.finish();
          if (file.size !== size) throw new Error("the copy has another size");
          const before = this.#entries.get(id);
          if (before !== undefined) this.#remove(before);
          this.#entries.set(id, { id, etag, size, file, users: 0, usedAt: this.#now() });
          this.#recorded.delete(id);
          state = "over";
        }),
      end: async () => {
        if (state === "over") return;
        state = "over";
        giveUp();
        await writer.close().catch(this.#options.onProblem);
      },
    };
  }

  /** Removes copies that were not used for long. */
  sweep(): void {
    const oldest = this.#now() - IDLE_MS;
    for (const entry of [...this.#entries.values()]) if (entry.usedAt < oldest) this.#remove(entry);
  }

  close(): void {
    clearInterval(this.#sweeper);
    for (const entry of [...this.#entries.values()]) this.#remove(entry);
  }

  #makeRoom(size: number): boolean {
    const { maxBytes } = this.#options;
    if (size > maxBytes) return false;
    const fits = () => this.#bytes + size <= maxBytes && this.#files < MAX_FILES;
    for (const entry of [...this.#entries.values()]) {
      if (fits()) break;
      if (entry.users === 0) this.#remove(entry);
    }
    return fits();
  }

  #remove(entry: Entry): void {
    if (this.#entries.get(entry.id) !== entry) return;
    this.#entries.delete(entry.id);
    this.#closeUnused(entry);
  }

  #closeUnused(entry: Entry): void {
    if (entry.users > 0) return;
    this.#forget(entry.size);
    entry.file.close().catch(this.#options.onProblem);
  }

  #forget(size: number): void {
    this.#bytes -= size;
    this.#files--;
  }

  #now(): number {
    return (this.#options.now ?? performance.now.bind(performance))();
  }
}

function idOf(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}

function sealOf(key: string, etag: string): Seal {
  return { key: Buffer.from(hkdfSync("sha256", key, "", "svc-input-copy:v1", 32)), label: etag };
}
