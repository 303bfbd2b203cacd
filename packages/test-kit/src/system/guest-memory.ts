/** What is in the memory of microVMs on this machine, for tests: programs in them are no processes of this machine. */
import { closeSync, openSync, readdirSync, readFileSync, readSync, writeSync } from "node:fs";

const PAGE = 4096n;
/** A piece of memory that is searched at once. */
const PIECE_PAGES = 1024;
/** A guest's memory is a mapping of its own, and QEMU has no other as large as this that can only be read and written. */
const LEAST_BYTES = 256n << 20n;
/** Bits of an entry of /proc/PID/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst). */
const PRESENT = 1n << 63n;
const SWAPPED = 1n << 62n;
/** A page of a file, or of memory that is shared. */
const OF_A_FILE = 1n << 61n;

interface Mapping {
  start: bigint;
  end: bigint;
  isShared: boolean;
}

/**
 * Numbers of the QEMU processes whose guest holds the word in its memory. Memory that guests share with the one that they
 * go on from is left out.
 */
export function guestsWith(word: string): string[] {
  return monitors().filter((pid) => withPlaces(pid, word, (places) => places.length > 0));
}

/** Writes another word of the same length over each of these, so that a program that looks at it finds the other one. */
export function replaceInGuests(word: string, other: string): void {
  for (const pid of monitors())
    withPlaces(pid, word, (places, memory) => {
      for (const place of places) writeSync(memory, Buffer.from(other), 0, other.length, Number(place));
    });
}

const monitors = () =>
  readdirSync("/proc").filter(
    (name) =>
      /^\d+$/.test(name) &&
      unlessGone(() => readFileSync(`/proc/${name}/comm`, "utf8")) === "qemu-system-x86\n",
  );

/** Hands over where in the file of its memory a guest holds the word; undefined when it ends meanwhile. */
function withPlaces<T>(
  pid: string,
  word: string,
  use: (places: bigint[], memory: number) => T,
): T | undefined {
  return unlessGone(() => {
    const memory = openSync(`/proc/${pid}/mem`, "r+");
    try {
      const pagemap = openSync(`/proc/${pid}/pagemap`, "r");
      try {
        return use(
          memoriesOf(pid).flatMap((mapping) => search(memory, pagemap, mapping, Buffer.from(word))),
          memory,
        );
      } finally {
        closeSync(pagemap);
      }
    } finally {
      closeSync(memory);
    }
  });
}

function memoriesOf(pid: string): Mapping[] {
  return [...readFileSync(`/proc/${pid}/maps`, "utf8").matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw-([ps]) /gm)]
    .map(([, start, end, kind]) => ({
      start: BigInt(`0x${start}`),
      end: BigInt(`0x${end}`),
      isShared: kind === "s",
    }))
    .filter(({ start, end }) => end - start >= LEAST_BYTES);
}

function search(memory: number, pagemap: number, { start, end, isShared }: Mapping, word: Buffer): bigint[] {
  const count = Number((end - start) / PAGE);
  const entries = Buffer.alloc(count * 8);
  readSync(pagemap, entries, 0, entries.length, (start / PAGE) * 8n);
  const isOwn = (page: number) => {
    const entry = entries.readBigUInt64LE(page * 8);
    return (entry & (PRESENT | SWAPPED)) !== 0n && (isShared || (entry & OF_A_FILE) === 0n);
  };
  return pieces(count, isOwn).flatMap(([first, after]) => {
    const at = start + BigInt(first) * PAGE;
    const piece = Buffer.alloc((after - first) * Number(PAGE));
    readSync(memory, piece, 0, piece.length, at);
    return offsetsOf(piece, word).map((offset) => at + BigInt(offset));
  });
}

function offsetsOf(piece: Buffer, word: Buffer): number[] {
  const found: number[] = [];
  for (let at = piece.indexOf(word); at >= 0; at = piece.indexOf(word, at + 1)) found.push(at);
  return found;
}

/** The first page of each run of such pages, and the one after its last; no longer than a piece. */
function pieces(count: number, isWanted: (page: number) => boolean): [first: number, after: number][] {
  const found: [number, number][] = [];
  for (let page = 0; page < count; page++) {
    const last = found.at(-1);
    if (!isWanted(page)) continue;
    if (last?.[1] === page && page - last[0] < PIECE_PAGES) last[1]++;
    else found.push([page, page + 1]);
  }
  return found;
}

/** Undefined when a process has ended, and its files with it. */
function unlessGone<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ESRCH", "EIO"].includes(code ?? "")) return undefined;
    throw error;
  }
}
