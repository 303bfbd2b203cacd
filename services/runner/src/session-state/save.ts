/**
 * Saves the state that a session's run leaves: what the plan says is read from the jail, archived, compressed, and stored through the gateway. A
 * failure costs nothing but the state; a note gives the reason.
 */
import {
  byteSize,
  type DroppedVariable,
  type ExecuteResponse,
  grouped,
  quotaOf,
  quotaUse,
  SNAPSHOT_NAME,
  VARIABLES_NAME,
} from "@svc/contracts";
import type { JailRun } from "@svc/jail-client";
import { compress, type WrittenMember, writeArchive } from "@svc/session-archive";
import type { GatewayClient, RunGateway } from "../gateway.ts";
import type { PlannedMember, SnapshotPlan } from "./plan.ts";
import { Spool } from "./spool.ts";
import { droppedNotes, MAX_HEADER_BYTES, parseHeader } from "./variables.ts";

export interface SaveDeps {
  gateway: Pick<GatewayClient, "store">;
  run: RunGateway;
  jail: Pick<JailRun, "fetch">;
  outputSession: string;
  fileId: string;
  /** The program keeps its variables from run to run. */
  hasVariables: boolean;
  /** Largest state, both as an archive and as stored. */
  maxBytes: number;
  onFailure: (error: unknown) => void;
}

export interface Saved {
  /** Absent: the state is not saved. */
  snapshot?: NonNullable<ExecuteResponse["session_snapshot"]>;
  dropped: DroppedVariable[];
  notes: string[];
}

const UNSAVED_VARIABLES = "Variables of this run not kept: it ended before they were saved";

/** The jail is unusable afterwards. */
export async function saveState(plan: SnapshotPlan, deps: SaveDeps): Promise<Saved> {
  const hasLastVariables = plan.hasLastVariables && deps.hasVariables;
  const saved = await save(plan, deps);
  const dropped = hasLastVariables || !deps.hasVariables ? [] : saved.dropped;
  const notes = [
    ...(hasLastVariables ? [UNSAVED_VARIABLES] : []),
    ...droppedNotes(dropped),
    ...(plan.unnamed > 0
      ? [`${grouped(plan.unnamed)} files not kept in the session: their names cannot be stored`]
      : []),
    ...saved.notes,
  ];
  return { ...saved, dropped, notes };
}

async function save(plan: SnapshotPlan, deps: SaveDeps): Promise<Saved> {
  const { members, size, isUnchanged, incomplete } = plan;
  if (incomplete !== undefined) return unsaved(incomplete);
  const variables = members.find(({ path }) => path === VARIABLES_NAME);
  const headOf = async (member: PlannedMember | undefined) =>
    parseHeader(member === undefined ? Buffer.alloc(0) : await startOf(member, deps));
  if (isUnchanged) {
    const { dropped } = await headOf(variables);
    return { snapshot: { unchanged: true, size: 0 }, dropped, notes: [] };
  }
  if (size <= deps.maxBytes) return store(members, deps);
  if (variables?.type !== "file" || size - variables.size > deps.maxBytes)
    return unsaved(`its files have ${grouped(size)} bytes, at most ${byteSize(deps.maxBytes)}`);
  const { names } = await headOf(variables);
  const reason = `all together more than ${byteSize(deps.maxBytes)} with the files`;
  const rest = await store(
    members.filter((member) => member !== variables),
    deps,
  );
  return { ...rest, dropped: names.map((name) => ({ name, reason })) };
}

export const unsaved = (reason: string): Saved => ({ dropped: [], notes: [`Session not saved: ${reason}`] });

class TooLarge extends Error {}

async function store(members: readonly PlannedMember[], deps: SaveDeps): Promise<Saved> {
  const { gateway, run, outputSession, fileId: id, maxBytes } = deps;
  const spool = new Spool(maxBytes);
  const head: Buffer[] = [];
  try {
    const archive = bounded(writeArchive(withBytes(members, deps, head)), maxBytes);
    await compress(archive, (chunk) => spool.write(chunk));
    await spool.finish();
    const { size } = spool;
    const file = { id, name: SNAPSHOT_NAME, size, contentType: "application/zstd" };
    await gateway.store(run, outputSession, file, async () => spool.read());
    return {
      snapshot: { unchanged: false, size },
      dropped: parseHeader(Buffer.concat(head)).dropped,
      notes: [],
    };
  } catch (error) {
    run.signal.throwIfAborted();
    if (error instanceof TooLarge || error instanceof RangeError)
      return unsaved(`it is larger than ${byteSize(maxBytes)}`);
    const quota = quotaOf(error);
    if (quota !== undefined) return unsaved(`no room for it beside the other sessions, ${quotaUse(quota)}`);
    deps.onFailure(error);
    return unsaved("it could not be stored");
  } finally {
    await spool.close();
  }
}

async function* bounded(bytes: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let total = 0;
  for await (const chunk of bytes) {
    total += chunk.length;
    if (total > maxBytes) throw new TooLarge();
    yield chunk;
  }
}

/** Yields the members with their bytes. Copies the start of the variables to `head`. */
async function* withBytes(
  members: readonly PlannedMember[],
  { jail }: Pick<SaveDeps, "jail">,
  head: Buffer[],
): AsyncGenerator<WrittenMember> {
  for (const { number, ...member } of members) {
    if (member.type !== "file" || number === undefined) {
      yield member;
      continue;
    }
    const fetched = await jail.fetch(number);
    if (fetched === undefined || fetched.size !== member.size) throw new Error("the jail cannot read a file");
    yield { ...member, body: member.path === VARIABLES_NAME ? watched(fetched.body, head) : fetched.body };
  }
}

async function* watched(body: AsyncIterable<Buffer>, head: Buffer[]): AsyncGenerator<Buffer> {
  let kept = 0;
  for await (const chunk of body) {
    if (kept < MAX_HEADER_BYTES) head.push(Buffer.from(chunk.subarray(0, MAX_HEADER_BYTES - kept)));
    kept += chunk.length;
    yield chunk;
  }
}

async function startOf({ number }: PlannedMember, { jail }: Pick<SaveDeps, "jail">): Promise<Buffer> {
  const head: Buffer[] = [];
  const fetched = number === undefined ? undefined : await jail.fetch(number);
  if (fetched !== undefined) for await (const _ of watched(fetched.body, head));
  return Buffer.concat(head);
}
