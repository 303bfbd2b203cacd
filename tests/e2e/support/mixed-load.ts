/**
 * A mixed load on several replicas of the API: programs, files, and programs with tools that pause. Every request goes to another
 * replica than the one before, and every answer is compared with what its program must say.
 */
import { slow } from "@svc/test-kit/jail/slowness";
import {
  type Answer,
  Api,
  deletePath,
  downloadPath,
  output,
  refTo,
  type SendOptions,
} from "@svc/test-kit/system/api";
import { newMarker, until } from "@svc/test-kit/system/processes";
import { declare, drive } from "@svc/test-kit/system/programmatic";

const ONE_MORE_MS = slow(120_000);
const CONTENT_BYTES = 100_000;
/** For so long a runner asks again for a file server that is away, with the pauses of services/runner/src/gateway.ts. */
const STORES_AGAIN_MS = 10_000;

/** An output could not be stored, and the answer says so. */
class OutputOmitted extends Error {}

/** Sends each request to the next of the replicas that take requests, as a balancer does. */
export class BalancedApi extends Api {
  #replicas: Api[] = [];
  #next = 0;

  constructor() {
    super("the replicas");
  }

  add(url: string): void {
    this.#replicas.push(new Api(url, { isOtherVersion: true }));
  }

  /** No further request goes there; those that it has accepted are answered. */
  remove(url: string): void {
    this.#replicas = this.#replicas.filter((replica) => replica.url !== url);
  }

  override send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const replica = this.#replicas[this.#next++ % this.#replicas.length];
    if (replica === undefined) throw new Error("no replica takes requests");
    return replica.send(method, path, options);
  }
}

function demand(isSo: boolean, what: string, found: unknown): void {
  if (!isSo) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

/** The kinds of work, each a chain of requests whose answers it checks. `word` is in no other one. */
const KINDS = {
  hello: async (api, word) => {
    const { stdout } = await api.exec({ lang: "py", code: `print("${word}")` });
    demand(stdout === `${word}\n`, "hello", stdout);
  },
  "same key twice": async (api, word) => {
    const headers = { "idempotency-key": word };
    const body = { lang: "py", code: "import uuid\nprint(uuid.uuid4())" };
    const first = await api.exec(body, { headers });
    const second = await api.exec(body, { headers });
    demand(first.stdout === second.stdout && first.stdout.length > 30, "one execution", [first, second]);
  },
  "Bash with files": async (api, word) => {
    const input = await api.stage("input.txt", word);
    const code = "sleep 0.3; tr a-z A-Z < input.txt > output.txt; echo $1";
    const answer = await api.exec({ lang: "bash", code, args: [word], files: [input] });
    demand(answer.stdout === `${word}\n` && answer.code === 0, "Bash", answer);
    if (answer.files_omitted?.some(({ name, reason }) => name === "output.txt" && reason === "upload_failed"))
      throw new OutputOmitted(answer.stderr);
    const made = await api.bytes(output(answer, "output.txt"));
    demand(made.toString() === word.toUpperCase(), "its output", made.toString());
  },
  "files up and down": async (api, word) => {
    const content = word.repeat(CONTENT_BYTES / word.length);
    const [file] = await api.upload({ "large.txt": content });
    if (file === undefined) throw new Error("no file was stored");
    demand((await api.bytes(file)).equals(Buffer.from(content)), "a file as it was stored", file);
    const read = await api.exec({
      lang: "py",
      code: 'print(len(open("large.txt").read()))',
      files: [refTo(file)],
    });
    demand(read.stdout === `${content.length}\n`, "a file as a program reads it", read);
    const deleted = await api.send("DELETE", deletePath(file));
    demand(deleted.status === 200, "the deletion", deleted.text);
    const gone = await api.send("GET", downloadPath(file));
    demand(gone.status === 404, "a file that was deleted", gone.status);
  },
  "programs with tools": async (api, word) => {
    const code = `
import uuid
drawn = [await draw(at=n) for n in range(3)]
both = await asyncio.gather(draw(at=3), draw(at=4))
print(*drawn, *both, "${word}")`;
    const shown: number[] = [];
    const tools = {
      draw: ({ at }: { at: number }) => {
        shown.push(at);
        return at * at;
      },
    };
    const { answer } = await drive(api, { code: `import asyncio${code}`, language: "python" }, tools);
    const isTrue = answer.status === "completed" && answer.stdout === `0 1 4 9 16 ${word}\n`;
    demand(isTrue, "a program with tools", answer);
    demand(shown.join() === "0,1,2,3,4", "each call once", shown);
  },
  "Bash with tools": async (api, word) => {
    const code = `first=$(look '{"of":"${word}"}'); echo "$first"; look '{"of":"end"}'`;
    const seen: string[] = [];
    const { answer } = await drive(
      api,
      { code, language: "bash", tools: declare(["look"]) },
      {
        look: ({ of }: { of: string }) => {
          seen.push(of);
          return `seen ${of}`;
        },
      },
    );
    const lines = answer.stdout.trim().split("\n");
    demand(answer.status === "completed" && lines.length === 2, "a Bash program with tools", answer);
    demand(seen.join() === `${word},end`, "each call of Bash once", seen);
  },
} satisfies Record<string, Work>;

type Work = (api: Api, word: string) => Promise<void>;

/** Where sessions are on: a run that continues another. */
const SESSION_KINDS = {
  "a session of two runs": async (api, word) => {
    const runtime_session_hint = word;
    const step = (code: string) => api.exec({ lang: "py", code, runtime_session_hint });
    const first = await step(`word = "${word}"\nopen("kept.txt", "w").write(word)`);
    demand(first.session_state_persisted === true, "a session that is kept", first);
    const second = await step('print(word, open("kept.txt").read())');
    demand(second.stdout === `${word} ${word}\n`, "a session that goes on", second);
  },
} satisfies Record<string, Work>;

export type Kind = keyof typeof KINDS | keyof typeof SESSION_KINDS;

/** Runs each kind again and again, one after the other, all kinds side by side, until it is ended. */
export class MixedLoad {
  readonly done: Map<Kind, number>;
  readonly failures: string[] = [];
  readonly #api: Api;
  readonly #loops: Promise<void>[];
  #isEnding = false;
  #phase = "before";
  #fileServerAway: { since: number; until: number } | undefined;

  constructor(api: Api, { sessions = false }: { sessions?: boolean } = {}) {
    this.#api = api;
    const kinds = Object.entries({ ...KINDS, ...(sessions ? SESSION_KINDS : {}) }) as [Kind, Work][];
    this.done = new Map(kinds.map(([kind]) => [kind, 0]));
    this.#loops = kinds.map(([kind, work]) => this.#loop(kind, work));
  }

  /** Names what happens from now on, for failures. */
  during(phase: string): void {
    this.#phase = phase;
  }

  /** The file server ends now, and is there again when `replaced` settles. */
  async withoutFileServer(replaced: Promise<void>): Promise<void> {
    const away = { since: performance.now(), until: Number.POSITIVE_INFINITY };
    this.#fileServerAway = away;
    await replaced;
    away.until = performance.now();
  }

  /** Where the machine is too slow for a start within the time of a runner, outputs may be omitted, as docs/operate.md says. */
  #mayOmit(): boolean {
    const { since, until: end } = this.#fileServerAway ?? { since: 0, until: 0 };
    return Math.min(end, performance.now()) - since >= STORES_AGAIN_MS;
  }

  /** Settles when each kind was done once more from its beginning. */
  async onceMore(): Promise<void> {
    const before = new Map(this.done);
    const isDone = () => [...before].every(([kind, count]) => (this.done.get(kind) ?? 0) >= count + 2);
    await until(
      () => isDone() || this.failures.length > 0,
      ONE_MORE_MS,
      () => [...this.done],
    );
  }

  /** Settles when all that was begun is answered. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#loops);
  }

  async #loop(kind: Kind, work: Work): Promise<void> {
    while (!this.#isEnding) {
      const phase = this.#phase;
      const word = newMarker().slice(-12);
      try {
        await work(this.#api, word);
        this.done.set(kind, (this.done.get(kind) ?? 0) + 1);
      } catch (error) {
        if (error instanceof OutputOmitted && this.#mayOmit()) continue;
        this.failures.push(`${kind}, begun ${phase}, failed ${this.#phase}: ${(error as Error).message}`);
        return;
      }
    }
  }
}
