/**
 * Jobs that nobody waits for, as Redis keeps them: a record for each, lists of those of a caller, and how they ended. Each change is one
 * script, so that a worker that ends a job and a caller who cancels it agree on which came first.
 */
import type { Job, JobResult } from "@svc/contracts";
import { type LuaCommand, luaCommand, type Redis, STORED, storeCall, storedKeys } from "@svc/service-kit";
import { eventsKey } from "./events.ts";
import { failed } from "./protocol.ts";

/** How long a job may wait and run; after that nothing is known of it. */
const OPEN_LIFE_MS = 24 * 3600 * 1000;
/** Of the keys and fields of a job in the queue, beside what is to run. */
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
  /** Of its caller. */
  namespace: string;
  status: KeptStatus;
  created_at: number;
  started_at?: number;
  ended_at?: number;
  language: string;
  session_id: string;
  request_id: string;
  /** Once it has ended. */
  end?: JobResult;
}

export const hasEnded = ({ status }: Pick<KeptJob, "status">): boolean =>
  status !== "queued" && status !== "running";

/** What a caller may have; 0: no limit. */
export interface MostKept {
  /** Jobs that have not ended. */
  jobs: number;
  /** Of these, of those that have ended, and of all else that counts with them. */
  bytes: number;
}

/** Where a page of the list goes on. */
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

  /** Notes a job before it is queued, and counts its bytes until its end. How many of its caller have not ended, with it. */
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

  /** It goes back to the queue. One that no runner had a slot for has not started. `cancelled`: somebody has asked for its end. */
  async giveBack(job: Pick<KeptJob, "id">, result: JobResult): Promise<"queued" | "cancelled"> {
    const hasStarted = result.ok || result.error.code !== "queue_saturated";
    return this.#giveBack(recordKey(job.id), hasStarted ? "started" : "");
  }

  /** Keeps how a job ended for so long, and counts what is stored of it. The first end counts; one that was to end while it ran was cancelled, whatever came of it. */
  async end(job: Pick<KeptJob, "id" | "namespace">, result: JobResult, lifeMs: number): Promise<void> {
    await this.#change(job, statusOf(result), result, lifeMs, "end");
  }

  /** Ends a job that has not started, and notes of one that runs that it is to end. Undefined: it is not known. The status that it had. */
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

  /** Removes a job that has ended, or is not known any more, and its events; it counts no longer. */
  async remove({ id, namespace }: Pick<KeptJob, "id" | "namespace">): Promise<void> {
    const keys = [recordKey(id), eventsKey(id), listKey(namespace), openKey(namespace)];
    await storeCall(() => this.#remove(...keys, ...storedKeys(namespace), id));
  }

  /** Those of a caller, the newest first, a page at a time. Without their ends. */
  async list(namespace: string, after: ListPage["next"]): Promise<ListPage> {
    const newest = after === undefined ? "+inf" : String(after.createdAt);
    const key = listKey(namespace);
    // Several may be of the same millisecond: the page begins behind the one that it goes on from.
    const found = await storeCall(() =>
      this.#redis.zrevrangebyscore(key, newest, "-inf", "LIMIT", 0, 2 * PAGE + 1),
    );
    const at = after === undefined ? 0 : found.indexOf(after.id) + 1;
    const ids = found.slice(at, at + PAGE);
    const records = await Promise.all(ids.map((id) => this.#summary(id)));
    const gone = ids.filter((_, index) => records[index] === undefined);
    const forgotten = gone.length === 0 ? undefined : storeCall(() => this.#redis.zrem(key, ...gone));
    const jobs = records.filter((record) => record !== undefined);
    const last = jobs.at(-1);
    const isLastPage = found.length <= at + PAGE;
    if (last === undefined && !isLastPage) {
      // Nothing of a whole page is kept any more; what is behind it may be.
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

  /** Ids of a caller's oldest jobs that have not ended. */
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

/** A program that fails or times out has completed its job. */
export function statusOf(result: JobResult): Ended {
  if (result.ok) return "completed";
  return result.error.code === "execution_cancelled" ? "cancelled" : "failed";
}
