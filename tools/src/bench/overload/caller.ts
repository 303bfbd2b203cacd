/** A caller of the measured copy, with a principal of its own. It reads answers as a client does. */
import { Agent, request } from "node:http";
import { buffer } from "node:stream/consumers";
import type { Signer } from "@svc/test-kit/credentials/signer";

export interface Seen {
  status: number;
  ms: number;
  retryAfter: number | undefined;
  error: string | undefined;
}

const PROGRAM = Buffer.from(JSON.stringify({ lang: "py", code: "print(6*7)" }));
const RIGHT = "42\n";
/** A token is valid for longer than this. */
const TOKEN_USE_MS = 60_000;

export class Caller {
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, scheduling: "lifo" });
  readonly #mint: () => string;
  #token = { value: "", since: Number.NEGATIVE_INFINITY };

  constructor(url: string, signer: Signer, user: string) {
    this.#url = new URL(`${url}/exec`);
    this.#mint = () => signer.mint({ claims: { sub: user } });
  }

  /** Runs a hello. Throws when a 200 has another output. */
  async run(): Promise<Seen> {
    const began = performance.now();
    const { status, headers, body } = await this.#post();
    const ms = performance.now() - began;
    const answer = JSON.parse(body.toString()) as { stdout?: string; error?: string };
    if (status === 200 && answer.stdout !== RIGHT)
      throw new Error(`unexpected result: ${body.toString().slice(0, 500)}`);
    const given = headers["retry-after"];
    return { status, ms, retryAfter: given === undefined ? undefined : Number(given), error: answer.error };
  }

  #headers(): Record<string, string | number> {
    const now = performance.now();
    if (now - this.#token.since > TOKEN_USE_MS) this.#token = { value: this.#mint(), since: now };
    return {
      authorization: `Bearer ${this.#token.value}`,
      "content-type": "application/json",
      "content-length": PROGRAM.length,
    };
  }

  #post(): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }> {
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers: this.#headers(), agent: this.#agent };
      const sent = request(this.#url, options, (response) => {
        const { statusCode: status = 0, headers } = response;
        buffer(response).then((body) => resolve({ status, headers, body }), reject);
      });
      sent.once("error", reject);
      sent.end(PROGRAM);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
