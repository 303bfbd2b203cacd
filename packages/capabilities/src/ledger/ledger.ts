/**
 * The egress ledger in Redis: one record per grant. It is the source of truth about whether a grant is valid and what remains of
 * its budgets. Only the gateway uses it. Every change is a compare-and-swap on the record's revision, so gateways never overwrite
 * each other's changes. Changes of one gateway to the same grant share swaps. `rules.ts` has the rules.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { newId, ServiceError } from "@svc/contracts";
import type { Redis } from "ioredis";
import { Connections } from "./connections.ts";
import { KnownRecords } from "./known-records.ts";
import { type LedgerRecord, newRecord, type RecordedGrant } from "./rules.ts";

const SWAP = readFileSync(new URL("./swap.lua", import.meta.url), "utf8");
const MAX_TRIES = 32;
/** After so many lost swaps a change asks for a turn. */
const TRIES_WITHOUT_TURN = 2;
/** The turn of another change lasts about one round trip to Redis. */
const MAX_PAUSE_MS = 10;
const MAX_WAITING = 1024;
const MAX_WAIT_MS = 5000;
/** A change whose reply was lost is sent again. It is recognised if fewer than this many other changes came in between. */
const KEPT_CHANGES = 16;
/** Matches the head of no record, so that the swap only reads. */
const NO_HEAD = "-";

export interface LedgerOptions {
  /** Opens a connection to Redis. */
  open: () => Redis;
  connections: number;
  graceSeconds: number;
  waiting?: number;
  waitMs?: number;
  /** Called for each change that must be repeated because another gateway changed the record first. */
  onConflict?: () => void;
}

/**
 * Returns the new record for an old one, or the old one itself when there is nothing to change. Throws to refuse the change.
 * Without a record it returns undefined or throws. The ledger may call it several times.
 */
export type LedgerRule = (record: LedgerRecord | undefined) => LedgerRecord | undefined;

interface Call {
  rule: LedgerRule;
  resolve: (record: LedgerRecord | undefined) => void;
  reject: (error: unknown) => void;
}

interface Applied {
  record: LedgerRecord | undefined;
  refusals: ReadonlyMap<Call, unknown>;
}

type Swapper = Redis & {
  svcSwapLedgerRecord: (
    key: string,
    turnKey: string,
    head: string,
    text: string,
    change: string,
    asksForTurn: 0 | 1,
  ) => Promise<[1] | [-1] | [0, string, string]>;
};

export const ledgerKey = (grantId: string) => `svc:egress:grant:${grantId}`;
const turnKey = (grantId: string) => `svc:egress:turn:${grantId}`;

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #connections: Connections<Swapper>;
  /** For each grant whose record is being changed: the calls that wait for the end of that change. */
  readonly #waiting = new Map<string, Call[]>();
  readonly #known = new KnownRecords();

  constructor(options: LedgerOptions) {
    this.#options = options;
    const { connections: units, waiting: length = MAX_WAITING, waitMs = MAX_WAIT_MS } = options;
    const refusal = () => new ServiceError("ledger_conflict");
    this.#connections = new Connections(() => withSwap(options.open()), {
      units,
      queue: { length, waitMs, refusal },
    });
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Stores the record of a new grant. A second registration of the same id is a bug and throws. */
  async register(grant: RecordedGrant, now: number): Promise<void> {
    if (!(await this.registerOnce(grant, now))) throw new Error("a grant was registered twice");
  }

  /** Stores the record of a grant. False when a record of its id exists already. */
  async registerOnce(grant: RecordedGrant, now: number): Promise<boolean> {
    const [isNew] = await this.#store([grant], now);
    return isNew === true;
  }

  /** Stores the records of new grants in one round trip. When it throws, some may have been stored. */
  async registerAll(grants: readonly RecordedGrant[], now: number): Promise<void> {
    if ((await this.#store(grants, now)).includes(false)) throw new Error("a grant was registered twice");
  }

  /** For each grant: whether its record is new. An existing record stays as it is. */
  async #store(grants: readonly RecordedGrant[], now: number): Promise<boolean[]> {
    const records = grants.map((grant) => {
      const record = newRecord(grant, newId());
      const seconds = Math.max(1, grant.exp - now + this.#options.graceSeconds);
      return { record, text: JSON.stringify(record), seconds };
    });
    const stored = await this.#connections.use(async (redis) => {
      const commands = redis.pipeline();
      for (const { record, text, seconds } of records)
        commands.set(ledgerKey(record.grant_id), text, "EX", seconds, "NX");
      const answers = (await commands.exec()) ?? [];
      return answers.map(([error, answer]) => {
        if (error !== null) throw error;
        return answer === "OK";
      });
    });
    for (const [at, { record, text }] of records.entries())
      if (stored[at] === true) this.#known.remember(record.grant_id, record, text.length);
    return stored;
  }

  /** The current record. */
  find(grantId: string): Promise<LedgerRecord | undefined> {
    return this.change(grantId, (record) => record);
  }

  /**
   * Changes the record by a rule and returns the resulting record. Throws the rule's refusal only when the rule saw the record
   * in Redis, or a later one that Redis has lost; never because of an outdated cached record. Waiting changes of one grant share a
   * swap. Throws `ledger_conflict` when the record keeps changing or too many changes wait.
   */
  change(grantId: string, rule: LedgerRule): Promise<LedgerRecord | undefined> {
    const waiting = this.#waiting.get(grantId);
    return new Promise((resolve, reject) => {
      const call = { rule, resolve, reject };
      if (waiting === undefined) void this.#serve(grantId, call);
      else if (waiting.length < (this.#options.waiting ?? MAX_WAITING)) waiting.push(call);
      else reject(new ServiceError("ledger_conflict"));
    });
  }

  close(): void {
    this.#connections.close();
  }

  /** Makes the change of the first call, then the changes that came meanwhile, until none waits. */
  async #serve(grantId: string, first: Call): Promise<void> {
    for (let calls = [first]; calls.length > 0; calls = this.#waiting.get(grantId) ?? []) {
      this.#waiting.set(grantId, []);
      try {
        const { record, refusals } = await this.#swap(grantId, calls);
        for (const call of calls) {
          if (refusals.has(call)) call.reject(refusals.get(call));
          else call.resolve(record);
        }
      } catch (error) {
        for (const call of calls) call.reject(error);
      }
    }
    this.#waiting.delete(grantId);
  }

  async #swap(grantId: string, calls: readonly Call[]): Promise<Applied> {
    const change = newId();
    const known = this.#known.get(grantId);
    let record = known;
    let head = known === undefined ? NO_HEAD : headOf(known);
    let chars = 0;
    let current = false;
    let othersTurn = false;
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const { record: changed, refusals } = applied(calls, record);
      if (current && changed === record) return { record: this.#remember(grantId, record, chars), refusals };
      if (othersTurn) await sleep(Math.random() * MAX_PAUSE_MS);
      const next = changed === record || changed === undefined ? undefined : revised(changed, change);
      const text = next === undefined ? "" : JSON.stringify(next);
      const [outcome, storedText = "", turn = ""] = await this.#connections.use((redis) =>
        redis.svcSwapLedgerRecord(
          ledgerKey(grantId),
          turnKey(grantId),
          next === undefined ? NO_HEAD : head,
          text,
          change,
          attempt < TRIES_WITHOUT_TURN ? 0 : 1,
        ),
      );
      if (outcome === 1) return { record: this.#remember(grantId, next, text.length), refusals };
      const stored = outcome === -1 ? undefined : (JSON.parse(storedText) as LedgerRecord);
      chars = storedText.length;
      current = true;
      // This change is already in the record: its reply was lost with the connection, and the command was sent again.
      if (stored?.changes.includes(change)) {
        return { record: this.#remember(grantId, stored, chars), refusals };
      }
      if (next !== undefined && head !== NO_HEAD) this.#options.onConflict?.();
      // After a crash Redis may have lost confirmed changes. The later revision that this process saw still counts.
      record = stored !== undefined && known !== undefined && stored.rev < known.rev ? known : stored;
      head = stored === undefined ? NO_HEAD : headOf(stored);
      othersTurn = turn !== "" && turn !== change;
    }
    throw new ServiceError("ledger_conflict");
  }

  #remember(grantId: string, record: LedgerRecord | undefined, chars: number): LedgerRecord | undefined {
    if (record === undefined) this.#known.forget(grantId);
    else this.#known.remember(grantId, record, chars);
    return record;
  }
}

/** Applies the rules one after the other. A refused rule changes nothing. */
function applied(calls: readonly Call[], from: LedgerRecord | undefined): Applied {
  let record = from;
  const refusals = new Map<Call, unknown>();
  for (const call of calls) {
    try {
      record = call.rule(record);
    } catch (error) {
      refusals.set(call, error);
    }
  }
  return { record, refusals };
}

/** The next revision of a record. `rev` and `changes` come first in its JSON text, because the swap compares that prefix. */
function revised({ rev, changes, ...rest }: LedgerRecord, change: string): LedgerRecord {
  return { rev: rev + 1, changes: [change, ...changes.slice(0, KEPT_CHANGES - 1)], ...rest };
}

const headOf = ({ rev, changes }: LedgerRecord) => `${JSON.stringify({ rev, changes }).slice(0, -1)},`;

function withSwap(redis: Redis): Swapper {
  redis.defineCommand("svcSwapLedgerRecord", { numberOfKeys: 2, lua: SWAP });
  return redis as Swapper;
}
