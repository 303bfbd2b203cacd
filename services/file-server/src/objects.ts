/**
 * The operations behind the routes: on objects and sessions, over store, cache and quotas. A caller that names a namespace sees the objects of
 * that namespace only; for it, all others do not exist.
 */
import {
  accountOf,
  type CommitSession,
  type FileDetail,
  isSnapshotNamespace,
  type ObjectRecord,
  ServiceError,
  type UploadedFile,
  type Usage,
} from "@svc/contracts";
import {
  type Content,
  type ObjectAddress,
  type ObjectAttributes,
  type ObjectStore,
  type OpenObject,
  type PendingAttributes,
  StoreError,
  type WriteLimits,
} from "@svc/object-store";
import { listed, uploadedFile } from "./descriptions.ts";
import { PENDING_LIFE_MS } from "./lives.ts";
import { type Quotas, sizedOf } from "./quota/quotas.ts";
import type { RecordCache } from "./record-cache.ts";
import { stored } from "./storage.ts";

export const MAX_LISTED = 10_000;

export class Objects {
  readonly #store: ObjectStore;
  readonly #cache: RecordCache;
  readonly #quotas: Quotas;
  readonly #limits: WriteLimits;

  constructor(store: ObjectStore, cache: RecordCache, quotas: Quotas, limits: WriteLimits) {
    this.#store = store;
    this.#cache = cache;
    this.#quotas = quotas;
    this.#limits = limits;
  }

  /** Stores an output of a run, or a snapshot. */
  async put(address: ObjectAddress, content: Content, given: ObjectAttributes): Promise<UploadedFile> {
    const attributes = isSnapshotNamespace(given.namespace) ? given : { ...given, origin: "output" as const };
    const account = accountOf(attributes);
    const record = await this.#quotas.writing(account, address, (admit) =>
      stored(() => this.#store.put(address, content, attributes, { ...this.#limits, admit })),
    );
    await Promise.all([this.#quotas.settle(account, [record]), this.#cache.remember([record])]);
    return uploadedFile(record);
  }

  /**
   * Stores a pending object. If an account is named, its quota is reserved while the object is pending; otherwise when the session is committed.
   */
  async stage(
    address: ObjectAddress,
    content: Content,
    attributes: PendingAttributes,
    account: string | undefined,
  ): Promise<{ size: number; etag: string; lastModified: string }> {
    const write = (limits: WriteLimits) =>
      stored(() => this.#store.stage(address, content, attributes, limits));
    const { size, etag, lastModified } =
      account === undefined
        ? await write(this.#limits)
        : await this.#quotas.writing(
            account,
            address,
            (admit) => write({ ...this.#limits, admit }),
            PENDING_LIFE_MS,
          );
    return { size, etag, lastModified };
  }

  async commit(session: string, commit: CommitSession): Promise<UploadedFile[]> {
    const { namespace, account = namespace, files } = commit;
    const attributes = {
      namespace,
      readOnly: commit.read_only,
      origin: "upload" as const,
      ...(account === namespace ? {} : { account }),
    };
    const records = await stored(() =>
      this.#store.commit(session, files, attributes, async (own) => {
        await this.#quotas.reserve(account, own.map(sizedOf));
      }),
    );
    await Promise.all([this.#quotas.settle(account, records), this.#cache.remember(records)]);
    return records.map(uploadedFile);
  }

  async discard(session: string, account: string | undefined): Promise<void> {
    await stored(() => this.#store.discard(session));
    if (account !== undefined) await this.#quotas.releaseSession(account, session);
  }

  /** Opens an object for use. The caller reads or closes it. */
  async open(address: ObjectAddress, namespace: string | undefined): Promise<OpenObject> {
    const object = await this.openOneOfMany(address, namespace);
    await this.remember([object.record]);
    return object;
  }

  /** Like `open`, but does not cache the record. The caller caches the records of all opened objects at once (`remember`). */
  async openOneOfMany(address: ObjectAddress, namespace: string | undefined): Promise<OpenObject> {
    const object = await stored(() => this.#store.open(address));
    if (namespace !== undefined && object.record.namespace !== namespace) {
      await object.close();
      throw new ServiceError("file_not_found");
    }
    await object.noteUse();
    return object;
  }

  /** Reads all bytes of an object, which checks them against the recorded hash. */
  async verify(address: ObjectAddress, namespace: string | undefined): Promise<void> {
    const object = await this.openOneOfMany(address, namespace);
    await stored(async () => {
      for await (const _ of object.read());
    });
  }

  remember(records: readonly ObjectRecord[]): Promise<void> {
    return this.#cache.remember(records);
  }

  /** A damaged object whose record cannot be read belongs to no namespace. */
  async delete(address: ObjectAddress, namespace: string | undefined): Promise<void> {
    const record = await stored(() => this.#recordOf(address));
    if (namespace !== undefined && record?.namespace !== namespace) throw new ServiceError("file_not_found");
    await this.#cache.forget(address);
    await stored(() => this.#store.delete(address));
    if (record !== undefined) await this.#quotas.release(accountOf(record), [address]);
  }

  /** Undefined when the record is damaged, too. */
  async #recordOf(address: ObjectAddress): Promise<ObjectRecord | undefined> {
    try {
      const object = await this.#store.open(address);
      await object.close();
      return object.record;
    } catch (error) {
      if (error instanceof StoreError && error.failure === "damaged") return error.record;
      throw error;
    }
  }

  usage(account: string): Promise<Usage["quotas"]> {
    return this.#quotas.usage(account);
  }

  /** Names of the files of a session. `known` has records that were read already; the session is listed only when it has other files, too. */
  async names(session: string, known: readonly ObjectRecord[]): Promise<string[]> {
    const ids = new Set(known.map(({ id }) => id));
    const found = await stored(() => this.#store.ids(session, ids.size + 1));
    const records = found.every((id) => ids.has(id))
      ? known.filter(({ id }) => found.includes(id))
      : await stored(() => this.#store.list(session, MAX_LISTED));
    if (records.length === 0) throw new ServiceError("file_not_found");
    return records.map(({ filename }) => filename);
  }

  async list(session: string, namespace: string | undefined, detail: FileDetail): Promise<unknown[]> {
    const records = await stored(() => this.#store.list(session, MAX_LISTED));
    const own = records.filter((record) => namespace === undefined || record.namespace === namespace);
    if (own.length === 0) throw new ServiceError("file_not_found");
    return own.map((record) => listed(record, detail));
  }
}
