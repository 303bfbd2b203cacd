/** The small inputs of a run and the directories of its sessions, fetched in one call when staging begins. */
import type { BatchedFile, BatchRequest, InputBatch } from "@svc/contracts";
import type { Reference } from "../execution/program.ts";

export class Batch {
  readonly #files: readonly Reference[];
  readonly #sessions: readonly string[];
  readonly #answer: Promise<InputBatch | undefined>;

  /** `ask` never rejects. It is not called when there is nothing to ask for. */
  constructor(
    files: readonly Reference[],
    sessions: readonly string[],
    ask: (request: BatchRequest) => Promise<InputBatch | undefined>,
  ) {
    this.#files = files;
    this.#sessions = sessions;
    const request = {
      files: files.map(({ storage_session_id, id }) => ({ storage_session_id, id })),
      directories: [...sessions],
    };
    const isEmpty = files.length + sessions.length === 0;
    this.#answer = isEmpty ? Promise.resolve(undefined) : ask(request);
  }

  /** Undefined: the file must be fetched on its own. */
  async file(file: Reference): Promise<BatchedFile | undefined> {
    const at = this.#files.indexOf(file);
    return at < 0 ? undefined : (await this.#answer)?.files[at];
  }

  /** Names of the `.dirkeep` files. Undefined: the session must be listed on its own. */
  async directories(session: string): Promise<readonly string[] | undefined> {
    const at = this.#sessions.indexOf(session);
    return at < 0 ? undefined : (await this.#answer)?.directories[at];
  }
}
