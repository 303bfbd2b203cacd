/**
 * Streams snapshots as tar archives (POSIX ustar, with pax headers for long names). The reader accepts only what the writer makes.
 * Both hold no more in memory than one block and the bytes in transit.
 */
import { Header, Pax } from "tar";
import { DamagedArchive, type Member, MemberRules } from "./members.ts";

const BLOCK = 512;
const ZEROS = Buffer.alloc(BLOCK);
/** Room for a path, a target, and the text around them. */
const MAX_PAX_BYTES = 10 * 1024;
const MODES = 0o777;

export type ReadMember = Member & {
  /** The bytes of a file. Callers must read them to the end before they ask for the next member. */
  body: AsyncGenerator<Buffer>;
};
export type WrittenMember = Member & { body?: AsyncIterable<Buffer> };

/** The members of an archive, in its order. Throws DamagedArchive. */
export async function* readArchive(source: AsyncIterable<Buffer>): AsyncGenerator<ReadMember> {
  const input = new Blocks(source);
  const rules = new MemberRules();
  try {
    for (let names: Names | undefined; ; ) {
      const block = await input.take(BLOCK);
      if (block.equals(ZEROS)) break;
      const header = headerOf(block, names);
      if (header.type === "ExtendedHeader") {
        if (names !== undefined) throw new DamagedArchive("two headers of names");
        names = await readNames(input, header.size ?? 0);
        continue;
      }
      const member = memberOf(header, names);
      names = undefined;
      rules.check(member);
      const body = input.body(member.type === "file" ? member.size : 0);
      yield { ...member, body };
      if (!(await body.next()).done) throw new TypeError("the bytes of a member were not read");
    }
    await input.expectEnd();
  } finally {
    await input.close();
  }
}

interface Names {
  path?: string;
  linkpath?: string;
}

/** `names`: names that do not fit into the header. Without them a cut name that ends with a slash would turn a file into a directory. */
function headerOf(block: Buffer, names?: Names): Header {
  let header: Header;
  try {
    header = new Header(block, 0, names);
  } catch (cause) {
    throw new DamagedArchive("a header that cannot be read", { cause });
  }
  if (!header.cksumValid) throw new DamagedArchive("a header with a wrong checksum");
  return header;
}

function memberOf(header: Header, names: Names = {}): Member {
  const { type, mode = 0, size = 0 } = header;
  const { path = header.path ?? "", linkpath = header.linkpath ?? "" } = names;
  switch (type) {
    case "File":
      if (!Number.isSafeInteger(size) || size < 0) throw new DamagedArchive("a file of no size");
      return { type: "file", path, mode: mode & MODES, size };
    case "Directory":
      if (size !== 0) throw new DamagedArchive("a directory with bytes");
      return { type: "directory", path: path.replace(/\/$/, ""), mode: mode & MODES };
    case "SymbolicLink":
      if (size !== 0) throw new DamagedArchive("a link with bytes");
      return { type: "symlink", path, target: linkpath };
    default:
      throw new DamagedArchive("a member of another type");
  }
}

async function readNames(input: Blocks, size: number): Promise<Names> {
  if (!(size > 0 && size <= MAX_PAX_BYTES)) throw new DamagedArchive("a header of names of a wrong size");
  const body: Buffer[] = [];
  for await (const part of input.body(size)) body.push(part);
  const given = Pax.parse(Buffer.concat(body).toString("utf8"));
  const names: Names = {};
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || key === "global") continue;
    if ((key !== "path" && key !== "linkpath") || typeof value !== "string")
      throw new DamagedArchive("a header of names that says more");
    names[key] = value;
  }
  return names;
}

/** Reads a stream in pieces of a wanted size. */
class Blocks {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async #more(): Promise<boolean> {
    for (;;) {
      const step = await this.#source.next();
      if (step.done) return false;
      if (step.value.length === 0) continue;
      this.#rest = step.value;
      return true;
    }
  }

  async take(size: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = size; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) throw new DamagedArchive("it is cut off");
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      parts.push(part);
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** Yields `size` bytes, then skips the rest of their last block. */
  async *body(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) throw new DamagedArchive("it is cut off");
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
    const padding = -size & (BLOCK - 1);
    if (padding > 0) await this.take(padding);
  }

  /** Expects the second block of zeros, and nothing after it. */
  async expectEnd(): Promise<void> {
    if (!(await this.take(BLOCK)).equals(ZEROS)) throw new DamagedArchive("it ends with something else");
    if (this.#rest.length > 0 || (await this.#more())) throw new DamagedArchive("it goes on behind its end");
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/** Whether an archive returns exactly this path or target: a line of a pax header must not contain a line end. */
export const isArchivable = (text: string): boolean => !text.includes("\n") || Buffer.byteLength(text) < 100;

/** The path of a member as its header has it. */
export const archivedPath = ({ type, path }: Member): string => (type === "directory" ? `${path}/` : path);

/** The bytes of an archive of these members. A directory comes before its content, or is implied by it. */
export async function* writeArchive(members: AsyncIterable<WrittenMember>): AsyncGenerator<Buffer> {
  for await (const member of members) {
    yield headersFor(member);
    if (member.type !== "file") continue;
    let left = member.size;
    for await (const part of member.body ?? []) {
      left -= part.length;
      yield part;
    }
    if (left !== 0) throw new TypeError("a file is not as large as it was said to be");
    const padding = -member.size & (BLOCK - 1);
    if (padding > 0) yield ZEROS.subarray(0, padding);
  }
  yield Buffer.concat([ZEROS, ZEROS]);
}

const TYPES = { file: "File", directory: "Directory", symlink: "SymbolicLink" } as const;
const START = new Date(0);

function headersFor(member: Member): Buffer {
  const { type } = member;
  const fields = {
    type: TYPES[type],
    path: archivedPath(member),
    mode: type === "symlink" ? MODES : member.mode,
    size: type === "file" ? member.size : 0,
    uid: 0,
    gid: 0,
    mtime: START,
    ...(type === "symlink" ? { linkpath: member.target } : {}),
  };
  const header = new Header(fields);
  const block = Buffer.alloc(BLOCK);
  header.encode(block, 0);
  // A header has no room for long names: a pax header before it holds them.
  const written = new Header(block);
  const names: Names = {
    ...(written.path === fields.path ? {} : { path: fields.path }),
    ...(type === "symlink" && written.linkpath !== member.target ? { linkpath: member.target } : {}),
  };
  if (Object.keys(names).length === 0) return block;
  return Buffer.concat([new Pax({ ...names } as Header).encode(), block]);
}
