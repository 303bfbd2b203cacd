/** Reads the result and the listing of a workspace off frames, within bounds. */
import { Fields, type Frame, ProtocolError } from "./frames.ts";
import { END_CAUSES, type ListedEntry, type RunEnd, type WorkspaceListing } from "./types.ts";

const NO_INPUT = 0xffffffff;
const MAX_ENTRIES = 100_000;
const STATES = ["new", "changed", "unchanged"] as const;
const OMITTED_REASONS = { 1: "type", 2: "name" } as const;

export function resultOf(payload: Buffer): RunEnd {
  const fields = new Fields(payload);
  const cause = END_CAUSES[fields.u8()];
  if (cause === undefined) throw new ProtocolError("unknown cause");
  return {
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
}

/** Collects the listing from its first frame up to and including `z`. */
export async function listingOf(first: Frame, next: () => Promise<Frame>): Promise<WorkspaceListing> {
  const listing: WorkspaceListing = {
    files: [],
    emptyDirectories: [],
    kept: [],
    missing: [],
    omitted: [],
    truncated: false,
    unlisted: 0,
  };
  let received = first;
  for (let entries = 0; received.tag !== "z"; entries++) {
    if (entries >= MAX_ENTRIES) throw new ProtocolError("listing too long");
    addEntry(listing, received);
    received = await next();
  }
  const fields = new Fields(received.payload);
  listing.truncated = fields.u32() !== 0;
  listing.unlisted = fields.u64();
  return listing;
}

function addEntry(listing: WorkspaceListing, { tag, payload }: Frame): void {
  const fields = new Fields(payload);
  switch (tag) {
    case "f":
      listing.files.push(listedEntry(fields));
      return;
    case "d":
      listing.emptyDirectories.push(fields.rest());
      return;
    case "k":
      listing.kept.push(fields.u32());
      return;
    case "m":
      listing.missing.push(fields.u32());
      return;
    case "o": {
      const reason = OMITTED_REASONS[fields.u8() as 1 | 2];
      if (reason === undefined) throw new ProtocolError("unknown reason");
      listing.omitted.push({ reason, path: fields.rest() });
      return;
    }
    default:
      throw new ProtocolError(`unexpected frame ${tag} in the listing`);
  }
}

function listedEntry(fields: Fields): ListedEntry {
  const number = fields.u32();
  const state = STATES[fields.u8()];
  if (state === undefined) throw new ProtocolError("unknown state");
  const input = fields.u32();
  const size = fields.u64();
  return { number, state, ...(input === NO_INPUT ? {} : { input }), size, path: fields.rest() };
}
