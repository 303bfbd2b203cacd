/**
 * The keys that are in force. Made at start, which fails with a source that is not right, and without a usable key unless
 * callers may have API keys instead. The directory is read again every SVC_JWT_KEY_CACHE_TTL_SECONDS in the background; requests use the last keys meanwhile and
 * never wait. A key whose file is gone or broken is no longer in force after that; while files cannot be read at all
 * (no descriptors, no permission, disk error) the last keys stay, and the log says so.
 */
import { type Config, ConfigError, type Log } from "@svc/service-kit";
import { type KeySet, keysOfDirectory, keysOfVariables } from "./key-sources.ts";
import type { VerificationKey } from "./key-text.ts";
import { refreshEvery } from "./refresh.ts";

export class KeyRing {
  readonly #log: Log;
  readonly #directory: string;
  readonly #allowed: readonly string[];
  readonly #fixed: KeySet;
  readonly #closing = new AbortController();
  #keys: KeySet;

  private constructor(config: Config, log: Log, fixed: KeySet, fromFiles: KeySet) {
    this.#log = log;
    this.#directory = config.SVC_JWT_PUBLIC_KEYS_DIR;
    this.#allowed = config.SVC_JWT_ALLOWED_ALGS;
    this.#fixed = fixed;
    this.#keys = this.#merge(fromFiles);
  }

  /** Throws ConfigError that names everything that is wrong. */
  static async open(config: Config, log: Log): Promise<KeyRing> {
    const problems: string[] = [];
    const note = (problem: string) => void problems.push(problem);
    const directory = config.SVC_JWT_PUBLIC_KEYS_DIR;
    const fixed = keysOfVariables(config, note);
    const fromFiles = await keysOfDirectory(directory, note).catch((error: Error) => {
      note(`SVC_JWT_PUBLIC_KEYS_DIR cannot be read: ${error.message}`);
      return new Map();
    });
    const ring = new KeyRing(config, log, fixed, fromFiles);
    if (problems.length === 0 && ring.size === 0 && config.SVC_API_KEYS_FILE === "") {
      note(
        `no key that verifies access tokens (${config.SVC_JWT_ALLOWED_ALGS.join(", ")}): set SVC_JWT_PUBLIC_KEY with SVC_JWT_KID, SVC_JWT_JWKS_JSON, SVC_JWT_PUBLIC_KEYS_DIR, or SVC_API_KEYS_FILE`,
      );
    }
    if (problems.length > 0) throw new ConfigError(problems);
    const everyMs = config.SVC_JWT_KEY_CACHE_TTL_SECONDS * 1000;
    if (directory !== "") refreshEvery(everyMs, ring.#closing.signal, () => ring.reload());
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
      this.#keys = this.#merge(await keysOfDirectory(this.#directory, warn));
    } catch (error) {
      this.#log.error({ err: error }, "reloading the JWT keys failed; the last ones stay in use");
      return;
    }
    const [added, removed] = [newIn(this.#keys, before), newIn(before, this.#keys)];
    if (added.length > 0 || removed.length > 0) {
      this.#log.info({ added, removed }, "JWT keys changed");
    }
    if (this.size === 0) this.#log.error("no JWT key is loaded; every token is refused");
  }

  close(): void {
    this.#closing.abort();
  }

  #merge(fromFiles: KeySet): KeySet {
    const usable = [...this.#fixed, ...fromFiles].filter(([, { algorithm }]) =>
      this.#allowed.includes(algorithm),
    );
    return new Map(usable);
  }
}

/** Key ids in `now` that `before` lacks or that stood for another key. */
function newIn(now: KeySet, before: KeySet): string[] {
  return [...now].filter(([kid, { key }]) => before.get(kid)?.key.equals(key) !== true).map(([kid]) => kid);
}
