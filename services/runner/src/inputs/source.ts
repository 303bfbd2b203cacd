/**
 * Opens the inputs of a run. The gateway is asked for every input of every run, under the run's grant, even when there is a copy. Several inputs
 * without a copy are fetched in one batch, and what the batch lacks on its own. When the gateway says that the object is unchanged, the bytes come
 * from the copy. Bytes from the gateway are checked against the checksum that storage recorded, bytes of a copy against its seal.
 */
import { createHash } from "node:crypto";
import type { Config, Log } from "@svc/service-kit";
import type { Reference } from "../execution/program.ts";
import {
  type FetchedInput,
  type GatewayClient,
  inputUnavailable,
  leave,
  type RunGateway,
} from "../gateway.ts";
import type { RunnerMetrics } from "../metrics.ts";
import { Batch } from "./batch.ts";
import { type HeldCopy, InputCache, type Recording } from "./cache.ts";

/**
 * For smaller inputs, asking takes as long as fetching. A run with one input from a copy, against the same run without copies: no difference up to
 * 64 KiB; 0.92 of the processor time at 512 KiB; 0.82 of it and 0.87 of the whole time at 1 MiB; 0.65 and 0.60 at 20 MiB. Making the copy of 20 MiB
 * costs a run 1.05 of its time.
 */
const MIN_BYTES = 512 * 1024;

export interface OpenInput {
  size: number;
  readOnly: boolean;
  /** Throws at its end when the bytes were not the right ones, and where they break off: with `storage_unavailable`, unless they are damaged. */
  bytes: AsyncGenerator<Buffer>;
  close: () => void;
}

/** A copy failed its check and was dropped. A new jail can be staged without it. */
export class SpoiledCopy extends Error {}

/** Makes a jail and stages it; repeats this once without copies when a copy turns out to be spoiled. */
export async function despiteSpoiledCopies<T>(stage: (withCopies: boolean) => Promise<T>): Promise<T> {
  try {
    return await stage(true);
  } catch (error) {
    if (error instanceof SpoiledCopy) return stage(false);
    throw error;
  }
}

/** The source of inputs, with copies if the configuration allows any. */
export function inputSource(
  gateway: GatewayClient,
  { SANDBOX_INPUT_CACHE_BYTES: maxBytes }: Pick<Config, "SANDBOX_INPUT_CACHE_BYTES">,
  metrics: RunnerMetrics,
  log: Log,
): InputSource {
  if (maxBytes === 0) return new InputSource(gateway, undefined, metrics);
  const onProblem = (error: unknown) => log.warn({ err: error }, "copying an input to the cache failed");
  const cache = new InputCache({ maxBytes, onProblem });
  metrics.watchCopies(() => cache.bytes);
  return new InputSource(gateway, cache, metrics);
}

export class InputSource {
  readonly #gateway: GatewayClient;
  readonly #cache: InputCache | undefined;
  readonly #metrics: Pick<RunnerMetrics, "askedForCopy">;

  /** Without a cache every input is fetched. */
  constructor(
    gateway: GatewayClient,
    cache: InputCache | undefined,
    metrics: Pick<RunnerMetrics, "askedForCopy">,
  ) {
    this.#gateway = gateway;
    this.#cache = cache;
    this.#metrics = metrics;
  }

  /**
   * Asks for all files without a copy, and for the directories of sessions. A single file is fetched on its own at the same time: it may be too
   * large for a batch, and would then come later.
   */
  batch(
    run: RunGateway,
    files: readonly Reference[],
    sessions: readonly string[],
    withCopies: boolean,
  ): Batch {
    const isCopied = (file: Reference) => {
      const copy = this.#find(file, withCopies);
      copy?.release();
      return copy !== undefined;
    };
    const uncopied = files.filter((file) => !isCopied(file));
    return new Batch(uncopied.length > 1 ? uncopied : [], sessions, (request) =>
      this.#gateway.fetchBatch(run, request),
    );
  }

  /** `batch`: may already hold the input. */
  async open(run: RunGateway, file: Reference, withCopies: boolean, batch?: Batch): Promise<OpenInput> {
    const batched = await batch?.file(file);
    if (batched !== undefined) {
      const { etag, readOnly, content } = batched;
      const input = { etag, readOnly, size: content.length, body: [content] };
      return { ...input, bytes: this.#fetched(run, input, file), close: () => undefined };
    }
    const copy = this.#find(file, withCopies);
    try {
      const input = await this.#gateway.fetchInput(run, file, copy?.etag);
      const { readOnly } = input;
      if (!("body" in input)) {
        if (copy === undefined || copy.etag !== input.etag) throw inputUnavailable(file);
        this.#metrics.askedForCopy(true);
        return { size: copy.size, readOnly, bytes: genuine(copy), close: copy.release };
      }
      copy?.release();
      const { size, body } = input;
      return { size, readOnly, bytes: this.#fetched(run, input, file), close: () => leave(body, LEFT) };
    } catch (error) {
      copy?.release();
      throw error;
    }
  }

  #find({ copy_key }: Reference, withCopies: boolean): HeldCopy | undefined {
    return withCopies && copy_key != null ? this.#cache?.find(copy_key) : undefined;
  }

  close(): void {
    this.#cache?.close();
  }

  async *#fetched(run: RunGateway, input: Fetched, file: Reference): AsyncGenerator<Buffer> {
    const recording = await this.#recording(input, file);
    const hash = createHash("sha256");
    let size = 0;
    let written: Promise<void> | undefined;
    try {
      try {
        for await (const chunk of input.body) {
          hash.update(chunk);
          size += chunk.length;
          await written;
          written = recording?.write(chunk);
          yield chunk;
        }
      } catch (error) {
        throw error === LEFT ? error : await this.#gateway.whyBroken(run, file, error);
      }
      if (size !== input.size || hash.digest("hex") !== input.etag) throw inputUnavailable(file);
      await written;
      await recording?.keep();
    } finally {
      await written;
      await recording?.end();
    }
  }

  async #recording({ etag, size }: Fetched, { copy_key }: Reference): Promise<Recording | undefined> {
    if (this.#cache === undefined || copy_key == null || size < MIN_BYTES) return undefined;
    this.#metrics.askedForCopy(false);
    return this.#cache.record(copy_key, etag, size);
  }
}

/** The reader wants no more of the bytes. */
const LEFT = new Error("the input was closed");

type Fetched = FetchedInput & { size: number; body: AsyncIterable<Buffer> | Iterable<Buffer> };

async function* genuine(copy: HeldCopy): AsyncGenerator<Buffer> {
  try {
    yield* copy.read();
  } catch (error) {
    copy.drop();
    throw new SpoiledCopy("a copy of an input is spoiled", { cause: error });
  } finally {
    copy.release();
  }
}
