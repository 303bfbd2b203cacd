/**
 * Persistent sessions in Redis (contract section 12). A session is a hash under `sessionstate:<namespace>[:<hint>]`; it says which
 * snapshot is its state, and since when. It expires a fixed time after its last use. An index per user names the user's sessions. One
 * sorted set holds every snapshot that may be stored, with the time until which a run or a session may need it. A snapshot that is
 * past this time and is not the state of a session can be deleted. A snapshot enters the set before it is stored, so none is forgotten
 * when a component dies.
 */
import { deadlinesFor, newId, type Snapshot } from "@svc/contracts";
import { type Config, type LuaCommand, luaCommand, type Redis } from "@svc/service-kit";

/** A session ends after this many failed restores in a row, if at least this time lies between the first and the last. */
const FAILURES = 3;
const FAILING_MS = 600_000;
/** Maximum sessions of a user, so that listing and finding them stays cheap. A new one beyond it evicts the least recently used one. */
const MOST_SESSIONS = 10_000;
/** Records that one call asks Redis for. */
const READ_AT_ONCE = 500;
/** Snapshots that one sweep step looks at. */
const SWEPT = 500;

const SNAPSHOTS = "svc:sessions:snapshots";
const recordKey = (namespace: string, hint: string | undefined) =>
  hint === undefined ? `sessionstate:${namespace}` : `sessionstate:${namespace}:${hint}`;
const indexKey = (namespace: string) => `svc:sessions:index:${namespace}`;
const attemptKey = (executionSession: string) => `svc:sessions:attempt:${executionSession}`;
const executionKey = (namespace: string, executionSession: string) =>
  `svc:sessions:execution:${namespace}:${executionSession}`;

/** Times in ms since 1970. Without `snapshot` no run has left a state yet. */
export interface SessionRecord {
  id: string;
  /** Absent: the default session of its user. */
  hint?: string;
  created_at: number;
  last_used_at: number;
  expires_at: number;
  language_last: string;
  snapshot?: Snapshot;
}

/** A run of a session, from `begin` to `settle`. */
export interface SessionRun {
  namespace: string;
  hint: string | undefined;
  sessionId: string;
  /** The snapshot that the run starts from. Absent: none. */
  from?: Snapshot;
  /** Where the run may store its own snapshot. */
  to: Omit<Snapshot, "size">;
}

export interface UnneededSnapshot extends Omit<Snapshot, "size"> {
  /** The namespace of its user. */
  namespace: string;
  /** Its member in the sorted set of snapshots. */
  member: string;
}

/**
 * What a run left: a stored snapshot of `size` bytes, the state it began with, or a state that could not be restored. A run that
 * left nothing is not settled: the sweep deletes what it may still be storing, after the time in which the run must be over.
 */
export type Left = { kind: "stored"; size: number } | { kind: "unchanged" | "failed" };
export type Settled = "current" | "conflict" | "gone" | "failed";

export interface BeginOptions {
  namespace: string;
  hint: string | undefined;
  language: string;
  /** The execution's own storage session, which holds its snapshot. */
  executionSession: string;
  /** A new id for each attempt of the execution, and the same id when a call is repeated. */
  snapshotId: string;
}

/** Takes the times from the configuration. Any run is over after the worker's deadline for the longest run plus the wait in the queue. */
export function sessionStoreFor(redis: Redis, config: Config): SessionStore {
  const { worker } = deadlinesFor(Math.max(config.JOB_TIMEOUT, config.MAX_RUN_TIMEOUT), config);
  return new SessionStore(redis, config.SVC_SESSION_STATE_TTL_SECONDS, worker + config.JOB_QUEUE_WAIT_MS);
}

export class SessionStore {
  readonly #redis: Redis;
  readonly #ttlMs: number;
  readonly #runMs: number;
  readonly #most: number;
  readonly #find: LuaCommand<string | null>;
  readonly #begin: LuaCommand<[string, string, string, string]>;
  readonly #settle: LuaCommand<Settled>;
  readonly #remove: LuaCommand<number>;

  /** `ttlSeconds`: life of a session after its last use. `runMs`: time in which any run is over. `most`: maximum sessions of a user. */
  constructor(redis: Redis, ttlSeconds: number, runMs: number, most = MOST_SESSIONS) {
    this.#redis = redis;
    this.#ttlMs = ttlSeconds * 1000;
    this.#runMs = runMs;
    this.#most = most;
    const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);
    this.#find = luaCommand(redis, "svcSessionFind", script("find"), 1);
    this.#begin = luaCommand(redis, "svcSessionBegin", script("begin"));
    this.#settle = luaCommand(redis, "svcSessionSettle", script("settle"), 4);
    this.#remove = luaCommand(redis, "svcSessionRemove", script("remove"), 3);
  }

  /** Begins a run; creates the session if there is none. An execution that begins again undoes what its earlier attempt left. */
  async begin({
    namespace,
    hint,
    language,
    executionSession,
    snapshotId,
  }: BeginOptions): Promise<SessionRun> {
    const to = { id: snapshotId, storage_session_id: executionSession };
    const key = recordKey(namespace, hint);
    const keys = [key, indexKey(namespace), SNAPSHOTS, attemptKey(executionSession)];
    if (hint !== undefined) keys.push(executionKey(namespace, executionSession));
    const own = [hint ?? "", newId(), language, this.#ttlMs, this.#runMs, memberOf(to, key)];
    const [sessionId, id, storage_session_id, size] = await this.#begin(
      ...[keys.length, ...keys],
      ...[...own, executionSession, recordKey(namespace, undefined), this.#most],
    );
    const from = id === "" ? {} : { from: { id, storage_session_id, size: Number(size) } };
    return { namespace, hint, sessionId, to, ...from };
  }

  /** Ends a run: its state becomes the session's, unless another run ended first or the session was removed. */
  settle(run: SessionRun, left: Left): Promise<Settled> {
    const { namespace, hint, sessionId, from, to } = run;
    const key = recordKey(namespace, hint);
    const size = left.kind === "stored" ? left.size : 0;
    const times = [this.#ttlMs, this.#runMs];
    const stored = [memberOf(to, key), to.id, to.storage_session_id, size];
    return this.#settle(
      ...[key, indexKey(namespace), SNAPSHOTS, attemptKey(to.storage_session_id)],
      ...[left.kind, sessionId, from?.id ?? "", ...times, ...stored, FAILURES, FAILING_MS],
    );
  }

  /**
   * Finds the hint of the persistent session that an execution used, by the execution's storage session. Undefined: it had no hint,
   * or the entry has expired. A lookup renews the entry, which lives as long as the persistent session.
   */
  async hintOf(namespace: string, executionSession: string): Promise<string | undefined> {
    const key = executionKey(namespace, executionSession);
    return (await this.#redis.getex(key, "PX", this.#ttlMs)) ?? undefined;
  }

  /** All sessions of a user, the most recently used first. */
  async list(namespace: string): Promise<SessionRecord[]> {
    const hints = await this.#redis.zrevrange(indexKey(namespace), 0, -1);
    const records: SessionRecord[] = [];
    for (let at = 0; at < hints.length; at += READ_AT_ONCE)
      records.push(...(await this.#read(namespace, hints.slice(at, at + READ_AT_ONCE))));
    return records;
  }

  /** The sessions of these hints in the form of the index (empty: the default session), without sessions that have ended. */
  async #read(namespace: string, hints: readonly string[]): Promise<SessionRecord[]> {
    const pipeline = this.#redis.pipeline();
    for (const hint of hints) {
      const key = recordKey(namespace, hint || undefined);
      pipeline.hgetall(key).pexpiretime(key);
    }
    const replies = (await pipeline.exec()) ?? [];
    const records: SessionRecord[] = [];
    for (const at of hints.keys()) {
      const [failed, fields] = replies[2 * at] ?? [];
      if (failed) throw failed;
      const record = recordOf(fields as Record<string, string>, Number(replies[2 * at + 1]?.[1]));
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  async find(namespace: string, id: string): Promise<SessionRecord | undefined> {
    const hint = await this.#find(indexKey(namespace), recordKey(namespace, undefined), id);
    if (hint === null) return undefined;
    return (await this.#read(namespace, [hint])).find((record) => record.id === id);
  }

  /** False: the user has no such session. */
  async remove(namespace: string, id: string): Promise<boolean> {
    const record = await this.find(namespace, id);
    if (record === undefined) return false;
    const key = recordKey(namespace, record.hint);
    return (await this.#remove(key, indexKey(namespace), SNAPSHOTS, id, this.#runMs)) === 1;
  }

  /**
   * Up to 500 snapshots that no session and no run needs. It returns a snapshot again until `forget` removes it. `skipped`: how many it
   * leaves out, in the order of earlier calls.
   */
  async unneeded(skipped = 0): Promise<UnneededSnapshot[]> {
    const [seconds, micros] = await this.#redis.time();
    const nowMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    const members = await this.#redis.zrangebyscore(SNAPSHOTS, "-inf", nowMs, "LIMIT", skipped, SWEPT);
    const unneeded: UnneededSnapshot[] = [];
    for (const member of members) {
      const { key, ...place } = placeOf(member);
      if ((await this.#redis.hget(key, "snapshot_id")) !== place.id) unneeded.push({ ...place, member });
      else
        await this.#redis.zadd(SNAPSHOTS, "XX", nowMs + Math.max(1000, await this.#redis.pttl(key)), member);
    }
    return unneeded;
  }

  /** For snapshots that have been deleted from storage. */
  async forget(snapshots: readonly UnneededSnapshot[]): Promise<void> {
    if (snapshots.length > 0) await this.#redis.zrem(SNAPSHOTS, ...snapshots.map(({ member }) => member));
  }
}

/** The member of a snapshot in the sorted set: its place in storage, and the key of the record of its session. */
const memberOf = ({ id, storage_session_id }: Omit<Snapshot, "size">, key: string) =>
  `${storage_session_id}/${id}/${key}`;

function placeOf(member: string) {
  const [storage_session_id = "", id = "", key = ""] = member.split("/");
  const [, ...namespace] = key.split(":").slice(0, 4);
  return { id, storage_session_id, key, namespace: namespace.join(":") };
}

function recordOf(fields: Record<string, string>, expires_at: number): SessionRecord | undefined {
  const { id, hint, created_at, last_used_at, language_last = "", ...snapshot } = fields;
  if (id === undefined) return undefined;
  const { snapshot_id, snapshot_session = "", snapshot_size } = snapshot;
  return {
    id,
    ...(hint ? { hint } : {}),
    created_at: Number(created_at),
    last_used_at: Number(last_used_at),
    expires_at,
    language_last,
    ...(snapshot_id === undefined
      ? {}
      : { snapshot: { id: snapshot_id, storage_session_id: snapshot_session, size: Number(snapshot_size) } }),
  };
}
