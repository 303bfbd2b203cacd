/**
 * The JWT keys that are in force. They are loaded at start, which fails when a source is invalid, or when there is no usable key and
 * API keys are not enabled either. The directory is read again in the background every SVC_JWT_KEY_CACHE_TTL_SECONDS; until then
 * requests use the previous keys and never wait. A key whose file is missing or broken is then no longer in force. While files cannot be
 * read at all (no descriptors, no permission, disk error), the previous keys stay and the log says so.
 */
import { type Config, ConfigError, type Log } from "@svc/service-kit";
import {
  type KeySet,
  keysOfDirectory,
  usableKeys,
  verificationKeys,
} from "@svc/service-kit/credentials/key-sources";
import type { VerificationKey } from "@svc/service-kit/credentials/key-text";
import { refreshEvery } from "./refresh.ts";

const NOT_ALLOWED = "a JWT key is not used: SVC_JWT_ALLOWED_ALGS lacks its algorithm";

export class KeyRing {
  readonly #log: Log;
  readonly #config: Config;
  readonly #fixed: KeySet;
  readonly #closing = new AbortController();
  #keys: KeySet;
  /** Ids of the keys whose algorithm is not allowed. */
  #unused: readonly string[] = [];

  private constructor(config: Config, log: Log, fixed: KeySet, fromFiles: KeySet) {
    this.#log = log;
    this.#config = config;
    this.#fixed = fixed;
    this.#keys = this.#merge(fromFiles);
  }

  /** Throws a ConfigError that lists every problem. */
  static async open(config: Config, log: Log): Promise<KeyRing> {
    const { fixed, fromFiles, problems } = await verificationKeys(config);
    if (problems.length > 0) throw new ConfigError(problems);
    const ring = new KeyRing(config, log, fixed, fromFiles);
    const everyMs = config.SVC_JWT_KEY_CACHE_TTL_SECONDS * 1000;
    if (config.SVC_JWT_PUBLIC_KEYS_DIR !== "")
      refreshEvery(everyMs, ring.#closing.signal, () => ring.reload());
    return ring;
  }

  get size(): number {
    return this.#keys.size;
  }

  get(kid: string): VerificationKey | undefined {
    return this.#keys.get(kid);
  }

  /** Reads the directory now. Never throws. */
  async reload(): Promise<void> {
    const before = this.#keys;
    try {
      const warn = (problem: string) => this.#log.warn({ problem }, "a JWT key was rejected");
      this.#keys = this.#merge(await keysOfDirectory(this.#config.SVC_JWT_PUBLIC_KEYS_DIR, warn, warn));
    } catch (error) {
      this.#log.error({ err: error }, "reloading the JWT keys failed; the last ones stay in use");
      return;
    }
    const [added, removed] = [newIn(this.#keys, before), newIn(before, this.#keys)];
    if (added.length > 0 || removed.length > 0) {
      this.#log.info({ added, removed }, "JWT keys changed");
    }
    const isMissed = removed.length > 0 || this.#config.SVC_API_KEYS_FILE === "";
    if (this.size === 0 && isMissed) this.#log.error("no JWT key is loaded; every token is refused");
  }

  close(): void {
    this.#closing.abort();
  }

  #merge(fromFiles: KeySet): KeySet {
    const all = new Map([...this.#fixed, ...fromFiles]);
    const usable = usableKeys(this.#config, all);
    const unused = [...all].filter(([kid]) => !usable.has(kid));
    for (const [kid, { algorithm }] of unused)
      if (!this.#unused.includes(kid)) this.#log.warn({ kid, algorithm }, NOT_ALLOWED);
    this.#unused = unused.map(([kid]) => kid);
    return usable;
  }
}

/** Key ids in `now` that are missing in `before` or had another key there. */
function newIn(now: KeySet, before: KeySet): string[] {
  return [...now].filter(([kid, { key }]) => before.get(kid)?.key.equals(key) !== true).map(([kid]) => kid);
}
