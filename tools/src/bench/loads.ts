/** Several requests in flight: a constant number for a while, and very many at once. */
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { cpuByComponent } from "./accounting.ts";
import type { LoadClient } from "./load-client.ts";
import { timed } from "./measure.ts";
import { HELLO, PANDAS } from "./scenarios.ts";
import { percentile, round, type Summary, sum, summarize } from "./statistics.ts";

export interface LoadRow {
  /** The scenario that the requests are of. */
  scenario: string;
  inFlight: number;
  requests: number;
  perSecond: number;
  /** Processor milliseconds of all components per request. */
  cpuMs: number;
  latency: Summary;
  errors: number;
}

export interface BurstRow {
  /** Requests that are sent at once. */
  requests: number;
  /** Milliseconds until the last answer, of each repetition. */
  last: Summary;
  /** For each repetition: the last answer compared with the time of so many requests at the throughput measured just before. */
  againstIdeal: Summary;
  /** When the answers came, in the median repetition. */
  answersMs: number[];
  idealMs: number;
  errors: number;
}

type Request = (client: LoadClient) => Promise<unknown>;

const PROGRAMS: Readonly<Record<string, Request>> = {
  "hello-python": (client) => client.exec("py", HELLO.python, "1\n"),
  "hello-javascript": (client) => client.exec("js", HELLO.javascript, "1\n"),
  pandas: (client) => client.exec("py", PANDAS, "499500"),
};

/** Requests as a share of --n, by mode. */
const LOADS = [
  ...[1, 2, 4, 8, 32].map((inFlight) => ({ scenario: "hello-python", inFlight, share: 2, coldShare: 0.5 })),
  { scenario: "hello-javascript", inFlight: 1, share: 0.5, coldShare: 0.25 },
  { scenario: "pandas", inFlight: 8, share: 2, coldShare: 0.3 },
] as const;

const BURST = 100;
const REPETITIONS = 5;
/** More than there are slots: shows what the system can do when there is always something to do. */
const SATURATED = 32;

export async function sustained(
  copy: PrivateCopy,
  client: LoadClient,
  n: number,
  isWarm: boolean,
): Promise<LoadRow[]> {
  const rows: LoadRow[] = [];
  for (const { scenario, inFlight, share, coldShare } of LOADS) {
    const requests = Math.ceil(n * (isWarm ? share : coldShare));
    const before = sum(cpuByComponent(copy.state()).values());
    const loop = await closedLoop(client, requestOf(scenario), inFlight, requests);
    const cpuMs = round((sum(cpuByComponent(copy.state()).values()) - before) / requests);
    rows.push({ scenario, inFlight, cpuMs, ...loop });
  }
  return rows;
}

/** All requests at once, several times; each time the throughput is measured just before, so that the ratio means something. */
export async function bursts(client: LoadClient): Promise<BurstRow> {
  const request = requestOf("hello-python");
  const repetitions: { answersMs: number[]; idealMs: number; errors: number }[] = [];
  for (let count = 0; count < REPETITIONS; count++) {
    const usual = await closedLoop(client, request, SATURATED, 2 * BURST);
    repetitions.push({ ...(await atOnce(client, request)), idealMs: (BURST / usual.perSecond) * 1000 });
  }
  const lastOf = ({ answersMs }: { answersMs: number[] }) => answersMs.at(-1) ?? 0;
  const ratioOf = (row: { answersMs: number[]; idealMs: number }) => lastOf(row) / row.idealMs;
  const ratios = repetitions.map(ratioOf).sort((left, right) => left - right);
  const middle = repetitions.find((row) => ratioOf(row) === percentile(ratios, 0.5));
  return {
    requests: BURST,
    last: summarize(repetitions.map(lastOf)),
    againstIdeal: summarize(ratios),
    answersMs: middle?.answersMs.map(round) ?? [],
    idealMs: round(middle?.idealMs ?? 0),
    errors: sum(repetitions.map(({ errors }) => errors)),
  };
}

function requestOf(scenario: string): Request {
  const request = PROGRAMS[scenario];
  if (request === undefined) throw new Error(`no load of ${scenario}`);
  return request;
}

/** Each client sends its next request when it has the answer to the last. */
async function closedLoop(
  client: LoadClient,
  request: Request,
  inFlight: number,
  requests: number,
): Promise<Pick<LoadRow, "requests" | "perSecond" | "latency" | "errors">> {
  const latencies: number[] = [];
  let errors = 0;
  let left = requests;
  const one = async () => {
    while (left-- > 0) {
      try {
        latencies.push(await timed(() => request(client)));
      } catch {
        errors++;
      }
    }
  };
  const elapsed = await timed(() => Promise.all(Array.from({ length: inFlight }, one)));
  return {
    requests,
    perSecond: round((latencies.length / elapsed) * 1000),
    latency: summarize(latencies),
    errors,
  };
}

async function atOnce(
  client: LoadClient,
  request: Request,
): Promise<{ answersMs: number[]; errors: number }> {
  const start = performance.now();
  const outcomes = await Promise.allSettled(
    Array.from({ length: BURST }, () => request(client).then(() => performance.now() - start)),
  );
  const answersMs = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  return {
    answersMs: answersMs.sort((left, right) => left - right),
    errors: BURST - answersMs.length,
  };
}
