/** The connections to one runner, and the calls in progress over them. */
import { ServiceError } from "@svc/contracts";
import { InnerClient, type TlsIdentity } from "@svc/service-kit";
import type { FoundRunner } from "./discovery.ts";

/** `run`: any runner may take the call; when its connection breaks, the run counts as broken. `held`: only this runner has the program. */
export type Bound = "run" | "held";

const UNREACHABLE = { run: "sandbox_execution_failed", held: "execution_not_found" } as const;

export class Connection {
  readonly #clients: Record<Bound, InnerClient>;
  readonly #calls = new Set<AbortController>();
  /** Since when discovery has not found the runner, in ms. */
  goneSince: number | undefined;

  constructor(
    { address, certifiedAs }: FoundRunner,
    connectMs: number | undefined,
    tls: TlsIdentity | undefined,
  ) {
    const client = (bound: Bound) =>
      new InnerClient({
        baseUrl: address,
        unreachable: UNREACHABLE[bound],
        tls,
        ...(certifiedAs === undefined ? {} : { certifiedAs }),
        ...(connectMs === undefined ? {} : { connectMs }),
      });
    this.#clients = { run: client("run"), held: client("held") };
  }

  get probed(): InnerClient {
    return this.#clients.run;
  }

  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  async call<T>(
    bound: Bound,
    signal: AbortSignal,
    send: (client: InnerClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const own = new AbortController();
    const follow = () => own.abort(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
    this.#calls.add(own);
    try {
      return await send(this.#clients[bound], own.signal);
    } catch (error) {
      if (!own.signal.aborted || signal.aborted) throw error;
      throw new ServiceError(UNREACHABLE[bound], undefined, { cause: own.signal.reason });
    } finally {
      this.#calls.delete(own);
      signal.removeEventListener("abort", follow);
    }
  }

  /** Aborts all calls: the runner gave no answer for too long. */
  cutOff(): void {
    for (const call of this.#calls) call.abort(new Error("the runner cannot be reached any more"));
  }

  async close(): Promise<void> {
    await Promise.all([this.#clients.run.close(), this.#clients.held.close()]);
  }
}
