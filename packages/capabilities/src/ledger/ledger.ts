/**
 * The egress ledger in Redis: one record per grant, the truth about whether a grant is still good and how much remains of its
 * budgets. Only the gateway uses it. Every change is a compare-and-swap on the record's revision, so changes of several
 * gateways never overwrite each other; changes of one gateway to one grant share swaps. The rules are `rules.ts`.
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
/** Another change has its turn for about as long as it takes to ask the store once. */
const MAX_PAUSE_MS = 10;
const MAX_WAITING = 1024;
const MAX_WAIT_MS = 5000;
/** So many other changes may come between a change whose answer was lost and its second arrival at the store. */
const KEPT_CHANGES = 16;
/** Is the head of no record: the swap becomes a look. */
const NO_HEAD = "-";

export interface LedgerOptions {
  /** Makes a connection. */
  open: () => Redis;
  connections: number;
  graceSeconds: number;
  waiting?: number;
  waitMs?: number;
  /** Called for each change that another gateway's overtook, and that is made again. */
  onConflict?: () => void;
}

/**
 * Makes the new record from the old one, or gives the old one back when there is nothing to change, or throws to refuse.
 * May be called several times. Without a record it gives undefined or throws.
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
  /** For each grant whose record is being changed: the calls that wait for that. */
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

  /** Stores the record of a grant, if there is none of its id: false when there is. */
  async registerOnce(grant: RecordedGrant, now: number): Promise<boolean> {
    const [isNew] = await this.#store([grant], now);
    return isNew === true;
  }

  /** Stores the records of new grants in one round trip. When it throws, some may have been stored. */
  async registerAll(grants: readonly RecordedGrant[], now: number): Promise<void> {
    if ((await this.#store(grants, now)).includes(false)) throw new Error("a grant was registered twice");
  }

  /** For each grant whether there was no record of its id. */
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

  /** The record as it is now. */
  find(grantId: string): Promise<LedgerRecord | undefined> {
    return this.change(grantId, (record) => record);
  }

  /**
   * Changes the record by a rule and gives the record that then holds. The rule's refusal is thrown only when it was made
   * of the record as the store has it, or of a later one that the store has lost. Changes of one grant that wait for each
   * other are made in one swap. Throws `ledger_conflict` when the record keeps changing or too many wait.
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

  /** Makes the change of a call, then those that came meanwhile, until none waits. */
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
      // The swap was made, but its answer was lost with the connection, and it was sent again.
      if (stored?.changes.includes(change)) {
        return { record: this.#remember(grantId, stored, chars), refusals };
      }
      if (next !== undefined && head !== NO_HEAD) this.#options.onConflict?.();
      // A store that crashed may have forgotten changes that it had confirmed: what this process saw of them still counts.
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

/** What the rules make of the record, one after the other; a refused one changes nothing. */
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

/** The next revision. `rev` and `changes` open the text of a record: the swap compares them there. */
function revised({ rev, changes, ...rest }: LedgerRecord, change: string): LedgerRecord {
  return { rev: rev + 1, changes: [change, ...changes.slice(0, KEPT_CHANGES - 1)], ...rest };
}

const headOf = ({ rev, changes }: LedgerRecord) => `${JSON.stringify({ rev, changes }).slice(0, -1)},`;

function withSwap(redis: Redis): Swapper {
  redis.defineCommand("svcSwapLedgerRecord", { numberOfKeys: 2, lua: SWAP });
  return redis as Swapper;
}
