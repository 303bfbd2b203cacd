/** Authentication as an operator of the containers sets it up. */

import type { Compose } from "@svc/test-kit/containers/compose";
import { type Answer, Api, type SendOptions } from "@svc/test-kit/system/api";

/** The words before a command of ./svc, of docs/containers.md. */
const IN_INIT = ["run", "--rm", "--no-deps", "-T", "init"];

/** The last lines that a command of ./svc prints in the container. */
export const inInit = (compose: Compose, ...words: string[]): Promise<string[]> =>
  compose.run(...IN_INIT, ...words);

/** The key among what `key add` and podman-compose print; empty without one. */
export const keyIn = (lines: readonly string[]): string =>
  lines.find((line) => /^svc_[\w-]{20,}$/.test(line.trim()))?.trim() ?? "";

/** Sends a key with each request. */
export class KeyApi extends Api {
  readonly #key: string;

  constructor(url: string, key: string) {
    super(url);
    this.#key = key;
  }

  override send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.#key}`, ...options.headers };
    return super.send(method, path, { ...options, headers });
  }
}
