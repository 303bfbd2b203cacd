/** Decodes the frames that jaild sends about a run, within bounds: state, pause, result and the listing of its workspace. */
import { REACHED_LIMITS, type ReachedLimit } from "@svc/contracts";
import { Fields, type Frame, ProtocolError } from "./frames.ts";
import {
  END_CAUSES,
  type ListedEntry,
  type RunEnd,
  type RunPause,
  TASK_STATES,
  type TaskState,
  type WorkspaceListing,
} from "./types.ts";

const NO_INPUT = 0xffffffff;
/** jaild lists every input, of which there are at most 11,000, and at most 10,000 other entries. */
const MAX_ENTRIES = 21_000;
const MAX_PATH = 4096 + 256;
const STATES = ["new", "changed", "unchanged"] as const;
const TIMED_OUT = 2;
const UNCOMPARED = 4;
const OMITTED_REASONS = { 1: "type", 2: "name" } as const;

/** The kept bytes of an output stream: never more than the cap that the run was given. */
export class Stream {
  readonly #cap: number;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(cap: number) {
    this.#cap = cap;
  }

  push(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#cap) throw new ProtocolError("more output than the cap");
    this.#chunks.push(chunk);
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

export function resultOf(payload: Buffer): RunEnd {
  const fields = new Fields(payload);
  const cause = END_CAUSES[fields.u8()];
  if (cause === undefined) throw new ProtocolError("unknown cause");
  const end = {
    cause,
    exitCode: fields.i32(),
    signal: fields.i32(),
    execErrno: fields.i32(),
    wallUs: fields.u64(),
    cpuUs: fields.u64(),
    memoryPeak: fields.u64(),
    stdoutTotal: fields.u64(),
    stderrTotal: fields.u64(),
    oomKills: fields.u32(),
  };
  return { ...end, reached: reachedOf(fields) };
}

function reachedOf(fields: Fields): ReachedLimit[] {
  const reached: ReachedLimit[] = [];
  while (fields.left > 0) {
    const limit = REACHED_LIMITS[fields.u8()];
    if (limit === undefined || reached.some((earlier) => earlier.limit === limit))
      throw new ProtocolError("not a limit that is reached once");
    reached.push({ limit, value: fields.u64() });
  }
  return reached;
}

export function stateOf(payload: Buffer): TaskState {
  const fields = new Fields(payload);
  const state = TASK_STATES[fields.u8()];
  if (state === undefined) throw new ProtocolError("unknown state");
  fields.end();
  return state;
}

export function pauseOf(payload: Buffer): Omit<RunPause, "stdout" | "stderr"> {
  const fields = new Fields(payload);
  const pause = {
    wallUs: fields.u64(),
    cpuUs: fields.u64(),
    memory: fields.u64(),
    stdoutTotal: fields.u64(),
    stderrTotal: fields.u64(),
  };
  fields.end();
  return pause;
}

/** Collects the listing from its first frame up to and including `z`. */
export async function listingOf(first: Frame, next: () => Promise<Frame>): Promise<WorkspaceListing> {
  const listing: WorkspaceListing = {
    files: [],
    emptyDirectories: [],
    directories: [],
    symlinks: [],
    kept: [],
    missing: [],
    omitted: [],
    timedOut: false,
    uncompared: false,
    unlisted: 0,
  };
  let received = first;
  for (let entries = 0; received.tag !== "z"; entries++) {
    if (entries >= MAX_ENTRIES) throw new ProtocolError("listing too long");
    addEntry(listing, received);
    received = await next();
  }
  const fields = new Fields(received.payload);
  const flags = fields.u32();
  listing.timedOut = (flags & TIMED_OUT) !== 0;
  listing.uncompared = (flags & UNCOMPARED) !== 0;
  listing.unlisted = fields.u64();
  fields.end();
  return listing;
}

function addEntry(listing: WorkspaceListing, { tag, payload }: Frame): void {
  const fields = new Fields(payload);
  switch (tag) {
    case "f":
      listing.files.push(listedEntry(fields, listing.files.length));
      return;
    case "d":
      listing.emptyDirectories.push(pathOf(fields));
      return;
    case "v":
      addDirectory(listing, fields);
      return;
    case "y":
      listing.symlinks.push(symlinkOf(fields.rest()));
      return;
    case "k":
      listing.kept.push(fields.u32());
      fields.end();
      return;
    case "m":
      listing.missing.push(fields.u32());
      fields.end();
      return;
    case "o": {
      const reason = OMITTED_REASONS[fields.u8() as 1 | 2];
      if (reason === undefined) throw new ProtocolError("unknown reason");
      listing.omitted.push({ reason, path: pathOf(fields) });
      return;
    }
    default:
      throw new ProtocolError(`unexpected frame ${tag} in the listing`);
  }
}

/** A directory of a whole listing. */
function addDirectory(listing: WorkspaceListing, fields: Fields): void {
  const input = fields.u32();
  const mode = fields.u16();
  const empty = fields.u8() !== 0;
  const path = pathOf(fields);
  listing.directories.push({ path, mode });
  if (input !== NO_INPUT) listing.kept.push(input);
  else if (empty) listing.emptyDirectories.push(path);
}

function symlinkOf(payload: Buffer): WorkspaceListing["symlinks"][number] {
  const end = payload.indexOf(0);
  if (end < 0) throw new ProtocolError("a symlink without target");
  return { path: bounded(payload.subarray(0, end)), target: bounded(payload.subarray(end + 1)) };
}

function pathOf(fields: Fields): Buffer {
  return bounded(fields.rest());
}

function bounded(path: Buffer): Buffer {
  if (path.length < 1 || path.length > MAX_PATH) throw new ProtocolError("path out of bounds");
  return path;
}

function listedEntry(fields: Fields, expected: number): ListedEntry {
  const number = fields.u32();
  if (number !== expected) throw new ProtocolError("files are not numbered in order");
  const state = STATES[fields.u8()];
  if (state === undefined) throw new ProtocolError("unknown state");
  const input = fields.u32();
  const size = fields.u64();
  const mode = fields.u16();
  return { number, state, ...(input === NO_INPUT ? {} : { input }), size, mode, path: pathOf(fields) };
}
