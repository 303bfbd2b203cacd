/**
 * The keys that are in force. Made at start, which fails with a source that is not right, and without a usable key unless
 * callers may have API keys instead. The directory is read again every SVC_JWT_KEY_CACHE_TTL_SECONDS in the background; requests use the last keys meanwhile and
 * never wait. A key whose file is gone or broken is no longer in force after that; while files cannot be read at all
 * (no descriptors, no permission, disk error) the last keys stay, and the log says so.
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
  /** Ids of those of an algorithm that is not allowed. */
  #unused: readonly string[] = [];

  private constructor(config: Config, log: Log, fixed: KeySet, fromFiles: KeySet) {
    this.#log = log;
    this.#config = config;
    this.#fixed = fixed;
    this.#keys = this.#merge(fromFiles);
  }

  /** Throws ConfigError that names everything that is wrong. */
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

/** Key ids in `now` that `before` lacks or that stood for another key. */
function newIn(now: KeySet, before: KeySet): string[] {
  return [...now].filter(([kid, { key }]) => before.get(kid)?.key.equals(key) !== true).map(([kid]) => kid);
}
