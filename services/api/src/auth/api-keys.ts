/**
 * The API keys that are in force. They are loaded at start, which fails when the file is invalid. A change of the file takes effect
 * within a second; until then requests use the previous keys and never wait. While a new file is broken or not trustworthy, the
 * previous keys stay in force. A missing file means no keys. Each problem is logged once.
 */
import { ConfigError, type Log } from "@svc/service-kit";
import {
  type ApiKeysFile,
  ApiKeysProblem,
  readApiKeysFile,
  versionOfFile,
} from "@svc/service-kit/credentials/api-keys-file";
import { ApiKeyIndex } from "./api-key-index.ts";
import type { Caller } from "./claims.ts";
import { refreshEvery } from "./refresh.ts";

const LOOK_EVERY_MS = 500;

export class ApiKeys {
  readonly #path: string;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #keys = new ApiKeyIndex([]);
  #version: string | undefined;
  #problem: string | undefined;

  private constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** Throws ConfigError. */
  static async open(path: string, log: Log): Promise<ApiKeys> {
    const keys = new ApiKeys(path, log);
    try {
      keys.#use(await readApiKeysFile(path));
    } catch (error) {
      if (!(error instanceof ApiKeysProblem)) throw error;
      throw new ConfigError([`SVC_API_KEYS_FILE ${error.message}`]);
    }
    if (keys.#keys.size === 0) log.warn({ file: path }, "no API key is loaded");
    refreshEvery(LOOK_EVERY_MS, keys.#closing.signal, () => keys.reload());
    return keys;
  }

  /** Throws TokenRefused. */
  callerOf(key: string): Caller {
    return this.#keys.callerOf(key, Date.now());
  }

  /** Reads the file again if it changed or had a problem. Never throws. */
  async reload(): Promise<void> {
    const isInUse = (await versionOfFile(this.#path)) === this.#version;
    if (isInUse && this.#problem === undefined) return;
    try {
      const file = await readApiKeysFile(this.#path);
      const before = this.#keys.ids();
      this.#use(file);
      const now = this.#keys.ids();
      const [added, removed] = [newIn(now, before), newIn(before, now)];
      this.#log.info({ keys: now.size, added, removed }, "API keys changed");
    } catch (error) {
      this.#fail(error);
    }
  }

  close(): void {
    this.#closing.abort();
  }

  #use({ records, version }: ApiKeysFile): void {
    this.#keys = new ApiKeyIndex(records);
    this.#version = version;
    this.#problem = undefined;
  }

  #fail(error: unknown): void {
    const problem = error instanceof ApiKeysProblem ? error.message : "the file cannot be read";
    if (problem === this.#problem) return;
    this.#problem = problem;
    const isMissing = error instanceof ApiKeysProblem && error.code === "ENOENT";
    if (isMissing) this.#keys = new ApiKeyIndex([]);
    const what = isMissing
      ? "no API key is loaded"
      : "reloading the API keys failed; the last ones stay in use";
    this.#log.error({ problem, keys: this.#keys.size }, what);
  }
}

const newIn = (now: ReadonlySet<string>, before: ReadonlySet<string>) =>
  [...now].filter((id) => !before.has(id));
