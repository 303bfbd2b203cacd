/**
 * Kept jobs, which no caller waits for, in Redis: a record with the result for each job, and lists of each caller's jobs. Each
 * change is one script, so a worker that ends a job and a caller who cancels it agree on which came first.
 */
import type { Job, JobResult } from "@svc/contracts";
import { type LuaCommand, luaCommand, type Redis, STORED, storeCall, storedKeys } from "@svc/service-kit";
import { eventsKey } from "./events.ts";
import { failed } from "./protocol.ts";

/** How long a job may wait and run. After that its record expires. */
const OPEN_LIFE_MS = 24 * 3600 * 1000;
/** Size of a job's keys and fields in the queue, in addition to its data. */
const KEYS_BYTES = 2048;
const PAGE = 100;
const CANCELLED = JSON.stringify(failed("execution_cancelled"));

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);
const recordKey = (id: string) => `svc:job:${id}`;
const listKey = (namespace: string) => `svc:jobs:${namespace}`;
const openKey = (namespace: string) => `svc:jobs-open:${namespace}`;

export const KEPT_STATUSES = ["queued", "running", "completed", "failed", "cancelled"] as const;
export type KeptStatus = (typeof KEPT_STATUSES)[number];
type Ended = Exclude<KeptStatus, "queued" | "running">;

/** Times are ms since 1970. */
export interface KeptJob {
  id: string;
  /** The namespace of the caller. */
  namespace: string;
  status: KeptStatus;
  created_at: number;
  started_at?: number;
  ended_at?: number;
  language: string;
  session_id: string;
  request_id: string;
  /** The result; present once the job has ended. */
  end?: JobResult;
}

export const hasEnded = ({ status }: Pick<KeptJob, "status">): boolean =>
  status !== "queued" && status !== "running";

/** Limits per caller; 0: no limit. */
export interface MostKept {
  /** Most jobs that have not ended. */
  jobs: number;
  /** Most bytes of unfinished and ended jobs, together with everything else that counts as stored bytes. */
  bytes: number;
}

/** One page of the list. `next`: where the next page begins. */
export interface ListPage {
  jobs: KeptJob[];
  /** Absent: this is the last page. */
  next?: { createdAt: number; id: string };
}

export class KeptJobs {
  readonly #redis: Redis;
  readonly #create: LuaCommand<number>;
  readonly #begin: LuaCommand<"run" | "cancelled" | "over">;
  readonly #giveBack: LuaCommand<"queued" | "cancelled">;
  readonly #end: LuaCommand<KeptStatus | null>;
  readonly #remove: LuaCommand<null>;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#create = luaCommand(redis, "svcCreateJob", [STORED, script("create-job")], 5);
    this.#begin = luaCommand(redis, "svcBeginJob", script("begin-job"), 1);
    this.#giveBack = luaCommand(redis, "svcGiveBackJob", script("give-back-job"), 1);
    this.#end = luaCommand(redis, "svcEndJob", [STORED, script("end-job")], 5);
    this.#remove = luaCommand(redis, "svcRemoveJob", [STORED, script("remove-job")], 6);
  }

  /** Records a job before it is queued, and counts its bytes until its end. Returns the caller's number of unfinished jobs, with this one. */
  async create(job: Job, most: MostKept): Promise<number | "too_many" | "too_much"> {
    const { execution_id: id, output_namespace: namespace, language, session_id, request_id } = job;
    const fields = Object.entries({ namespace, language, session_id, request_id }).flat();
    const keys = [recordKey(id), listKey(namespace), openKey(namespace), ...storedKeys(namespace)];
    const listLifeMs = OPEN_LIFE_MS + (job.kept ?? 0);
    const bytes = KEYS_BYTES + Buffer.byteLength(JSON.stringify(job));
    const record = [id, Date.now(), OPEN_LIFE_MS, most.jobs, JSON.stringify(fields), listLifeMs];
    const place = await storeCall(() => this.#create(...keys, ...record, bytes, most.bytes));
    if (place === 0) return "too_many";
    return place < 0 ? "too_much" : place;
  }

  async begin({ execution_id: id }: Job): Promise<"run" | "cancelled" | "over"> {
    return this.#begin(recordKey(id), Date.now());
  }

  /** Marks a job that goes back to the queue. It has not started when no runner had a slot. `cancelled`: somebody asked to end it. */
  async giveBack(job: Pick<KeptJob, "id">, result: JobResult): Promise<"queued" | "cancelled"> {
    const hasStarted = result.ok || result.error.code !== "queue_saturated";
    return this.#giveBack(recordKey(job.id), hasStarted ? "started" : "");
  }

  /**
   * Keeps the result of a job for `lifeMs`, and counts its stored bytes. Only the first end counts. A job that somebody asked to end
   * while it ran ends as cancelled, whatever its result.
   */
  async end(job: Pick<KeptJob, "id" | "namespace">, result: JobResult, lifeMs: number): Promise<void> {
    await this.#change(job, statusOf(result), result, lifeMs, "end");
  }

  /** Ends a queued job, or records that a running one is to end. Returns the status before; undefined for an unknown job. */
  async cancel(
    job: Pick<KeptJob, "id" | "namespace">,
    result: JobResult,
    lifeMs: number,
  ): Promise<KeptStatus | undefined> {
    return this.#change(job, "cancelled", result, lifeMs, "ask");
  }

  async #change(
    { id, namespace }: Pick<KeptJob, "id" | "namespace">,
    status: Ended,
    result: JobResult,
    lifeMs: number,
    how: "end" | "ask",
  ): Promise<KeptStatus | undefined> {
    const keys = [recordKey(id), openKey(namespace), eventsKey(id), ...storedKeys(namespace)];
    const before = await storeCall(() =>
      this.#end(...keys, id, Date.now(), status, JSON.stringify(result), lifeMs, how, CANCELLED),
    );
    return before ?? undefined;
  }

  async find(id: string): Promise<KeptJob | undefined> {
    return jobOf(id, await storeCall(() => this.#redis.hgetall(recordKey(id))));
  }

  /** Removes a job that has ended or whose record expired, with its events. Its bytes no longer count. */
  async remove({ id, namespace }: Pick<KeptJob, "id" | "namespace">): Promise<void> {
    const keys = [recordKey(id), eventsKey(id), listKey(namespace), openKey(namespace)];
    await storeCall(() => this.#remove(...keys, ...storedKeys(namespace), id));
  }

  /** A page of a caller's jobs, the newest first, without their results. */
  async list(namespace: string, after: ListPage["next"]): Promise<ListPage> {
    const newest = after === undefined ? "+inf" : String(after.createdAt);
    const key = listKey(namespace);
    const found = await storeCall(() =>
      this.#redis.zrevrangebyscore(key, newest, "-inf", "WITHSCORES", "LIMIT", 0, 2 * PAGE + 1),
    );
    const later = idsAfter(found, after);
    const ids = later.slice(0, PAGE);
    const records = await Promise.all(ids.map((id) => this.#summary(id)));
    const gone = ids.filter((_, index) => records[index] === undefined);
    const forgotten = gone.length === 0 ? undefined : storeCall(() => this.#redis.zrem(key, ...gone));
    const jobs = records.filter((record) => record !== undefined);
    const last = jobs.at(-1);
    const isLastPage = later.length <= PAGE;
    if (last === undefined && !isLastPage) {
      // All records of this page have expired, but later ones may still exist.
      await forgotten;
      return this.list(namespace, after);
    }
    forgotten?.catch(() => undefined);
    if (last === undefined || isLastPage) return { jobs };
    return { jobs, next: { createdAt: last.created_at, id: last.id } };
  }

  async #summary(id: string): Promise<KeptJob | undefined> {
    const names = ["namespace", "status", "created_at", "started_at", "ended_at", "language", "session_id"];
    const values = await storeCall(() => this.#redis.hmget(recordKey(id), ...names));
    return jobOf(
      id,
      Object.fromEntries(names.map((name, at) => [name, values[at]]).filter(([, value]) => value)),
    );
  }

  /** Ids of a caller's oldest unfinished jobs, at most a page of them. */
  async open(namespace: string): Promise<string[]> {
    return storeCall(() => this.#redis.zrange(openKey(namespace), "0", String(PAGE - 1)));
  }
}

function jobOf(id: string, fields: Record<string, string | undefined>): KeptJob | undefined {
  const {
    status,
    namespace,
    language = "",
    session_id = "",
    request_id = "",
    created_at,
    started_at,
    ended_at,
    end,
  } = fields;
  if (status === undefined || namespace === undefined) return undefined;
  return {
    id,
    namespace,
    status: status as KeptStatus,
    language,
    session_id,
    request_id,
    created_at: Number(created_at),
    ...(started_at === undefined ? {} : { started_at: Number(started_at) }),
    ...(ended_at === undefined ? {} : { ended_at: Number(ended_at) }),
    ...(end === undefined ? {} : { end: JSON.parse(end) as JobResult }),
  };
}

/** A job whose program fails or times out counts as completed. */
export function statusOf(result: JobResult): Ended {
  if (result.ok) return "completed";
  return result.error.code === "execution_cancelled" ? "cancelled" : "failed";
}

/**
 * The ids of a list with its scores that come after the last job of the previous page, which may have been removed meanwhile. Jobs of
 * one millisecond are in the descending order of their ids.
 */
function idsAfter(found: readonly string[], after: ListPage["next"]): string[] {
  const ids: string[] = [];
  for (let at = 0; at < found.length; at += 2) {
    const [id = "", score] = found.slice(at, at + 2);
    if (after === undefined || Number(score) < after.createdAt || id < after.id) ids.push(id);
  }
  return ids;
}
