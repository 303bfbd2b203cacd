/** A mixed load on a fleet while something happens to it: of the chains of tests/chaos, of jobs and of streams. */
import type { CreatedJob, ExecResponse, PublicJob } from "@svc/contracts";
import { Answer } from "@svc/test-kit/system/api";
import { openStream, resultOf } from "@svc/test-kit/system/streams";
import { files, plain, tools, twice } from "../../chaos/chains.ts";
import { type Rules, violations, violationsOfPair, violationsOfSession } from "../../chaos/checker.ts";
import { type Chain, demand, type Lane, Seen } from "../../chaos/load.ts";
import { oneOf, random } from "../../chaos/random.ts";
import { countsOf } from "../../chaos/run.ts";
import type { Fault } from "../../chaos/schedule.ts";
import { sessionStep } from "../../chaos/sessions.ts";
import { DEADLINES, MOST_CALLS, RUN_MS } from "../../chaos/system.ts";

/** Settings of all components, for which the chains are written. */
export const LOAD_ENV: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(DEADLINES).map(([name, ms]) => [name, String(ms)])),
  PTC_MAX_CALLS: String(MOST_CALLS),
};

const JOB_WAIT_MS = 10_000;

const programOf = (token: string) => ({
  lang: "bash",
  code: `sleep 0.3; echo ${token}`,
  run_timeout: RUN_MS,
});
const judged = (token: string, { stdout, code }: ExecResponse, text: string): undefined =>
  demand(stdout === `${token}\n` && code === 0, "a program", text);

/** A job that nobody waits for; its end is asked for until it has come. */
const job: Chain = async ({ api, seen }) => {
  const token = seen.token();
  const headers = { prefer: "respond-async", "idempotency-key": token };
  const created = await seen.request(
    "job",
    token,
    async () => {
      const { status, headers: told, bytes } = await api.post("/exec", programOf(token), { headers });
      return new Answer(status === 202 ? 200 : status, told, bytes);
    },
    () => undefined,
  );
  const id = created?.ok<CreatedJob>().job_id;
  for (let isOpen = id !== undefined; isOpen; ) {
    const found = await seen.request(
      "end of a job",
      token,
      () => api.send("GET", `/jobs/${id}?wait_ms=${JOB_WAIT_MS}`),
      (answer) => judgedJob(token, answer),
    );
    isOpen = found !== undefined && isUnderWay(found.ok<PublicJob>());
  }
};

const isUnderWay = ({ status }: PublicJob) => status === "queued" || status === "running";

function judgedJob(token: string, answer: Answer): undefined {
  const found = answer.ok<PublicJob>();
  if (isUnderWay(found)) return undefined;
  demand(found.status === "completed" && found.result != null, "a job", answer.text);
  return judged(token, found.result as ExecResponse, answer.text);
}

/** A run whose events are read while it runs; the last one is its result. */
const stream: Chain = async ({ api, seen }) => {
  const token = seen.token();
  await seen.request(
    "stream",
    token,
    async () => {
      const coming = await openStream(api.url, "/exec", programOf(token), {
        headers: { connection: "close" },
      });
      if (coming.status !== 200) return coming.answer();
      const result = resultOf<ExecResponse>(await coming.all());
      return new Answer(200, coming.headers, Buffer.from(JSON.stringify(result)));
    },
    (answer) => judged(token, answer.ok<ExecResponse>(), answer.text),
  );
};

const LANES: readonly (readonly Chain[])[] = [
  [plain],
  [files],
  [tools],
  [tools, twice],
  [sessionStep],
  [job, stream],
];

export class FleetLoad {
  readonly seen: Seen;
  readonly #lanes: Promise<unknown>;
  #isEnding = false;

  /** `name`: no other load of the same system has it. */
  constructor(api: Lane["api"], name: string, seed: number) {
    this.seen = new Seen(name);
    this.#lanes = Promise.all(
      LANES.map(async (chains, at) => {
        const lane = { api, seen: this.seen, at, next: random("lane", seed, at) };
        while (!this.#isEnding) await oneOf(chains, lane.next)(lane);
      }),
    );
    this.#lanes.catch(() => undefined);
  }

  /** How many requests were answered rightly. */
  get right(): number {
    return this.seen.ended.filter(({ outcome }) => outcome.as === "right").length;
  }

  /** How many requests of each kind ended how. */
  get counts(): Record<string, number> {
    return countsOf(this.seen);
  }

  /** Settles when all that was begun is answered: what did not hold, as sentences. */
  async end(faults: readonly Fault[], rules: Rules): Promise<string[]> {
    this.#isEnding = true;
    await this.#lanes;
    const { ended, sessions, pairs, problems } = this.seen;
    return [
      ...violations(ended, faults, rules),
      ...[...sessions].flatMap(([session, steps]) => violationsOfSession(session, steps, faults)),
      ...pairs.flatMap((pair) => violationsOfPair(pair, faults, rules)),
      ...problems,
    ];
  }
}
