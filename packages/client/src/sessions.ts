/** Persistent sessions of the caller, where the service keeps them. */
import type { SessionFiles, SessionList } from "./api.generated.ts";
import type { CallOptions, Http } from "./http.ts";

export class Sessions {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async list(options: CallOptions = {}): Promise<SessionList["sessions"]> {
    return (await this.#http.json<SessionList>({ method: "GET", path: "/sessions", ...options })).sessions;
  }

  async files(id: string, options: CallOptions = {}): Promise<SessionFiles["files"]> {
    const path = `/sessions/${encodeURIComponent(id)}/files`;
    return (await this.#http.json<SessionFiles>({ method: "GET", path, ...options })).files;
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#http.done({ method: "DELETE", path: `/sessions/${encodeURIComponent(id)}`, ...options });
  }
}
