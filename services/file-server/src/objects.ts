/**
 * What the routes do with single objects and sessions, between the store and the cache. A caller that names a namespace
 * sees the objects of that namespace only; everything else does not exist for it.
 */
import { type CommitSession, type FileDetail, ServiceError, type UploadedFile } from "@svc/contracts";
import type {
  Content,
  ObjectAddress,
  ObjectAttributes,
  ObjectStore,
  OpenObject,
  PendingAttributes,
  WriteLimits,
} from "@svc/object-store";
import { listed, uploadedFile } from "./descriptions.ts";
import type { RecordCache } from "./record-cache.ts";
import { stored } from "./storage.ts";

export const MAX_LISTED = 10_000;

export class Objects {
  readonly #store: ObjectStore;
  readonly #cache: RecordCache;
  readonly #limits: WriteLimits;

  constructor(store: ObjectStore, cache: RecordCache, limits: WriteLimits) {
    this.#store = store;
    this.#cache = cache;
    this.#limits = limits;
  }

  async put(address: ObjectAddress, content: Content, attributes: ObjectAttributes): Promise<UploadedFile> {
    const record = await stored(() => this.#store.put(address, content, attributes, this.#limits));
    await this.#cache.remember([record]);
    return uploadedFile(record);
  }

  async stage(
    address: ObjectAddress,
    content: Content,
    attributes: PendingAttributes,
  ): Promise<{ size: number; etag: string; lastModified: string }> {
    const { size, etag, lastModified } = await stored(() =>
      this.#store.stage(address, content, attributes, this.#limits),
    );
    return { size, etag, lastModified };
  }

  async commit(session: string, { namespace, read_only, files }: CommitSession): Promise<UploadedFile[]> {
    const attributes = { namespace, readOnly: read_only };
    const records = await stored(() => this.#store.commit(session, files, attributes));
    await this.#cache.remember(records);
    return records.map(uploadedFile);
  }

  async discard(session: string): Promise<void> {
    await stored(() => this.#store.discard(session));
  }

  /** Opens an object for use. The caller reads or closes it. */
  async open(address: ObjectAddress, namespace: string | undefined): Promise<OpenObject> {
    const object = await stored(() => this.#store.open(address));
    if (namespace !== undefined && object.record.namespace !== namespace) {
      await object.close();
      throw new ServiceError("file_not_found");
    }
    await Promise.all([object.noteUse(), this.#cache.remember([object.record])]);
    return object;
  }

  async delete(address: ObjectAddress, namespace: string | undefined): Promise<void> {
    const object = await stored(() => this.#store.open(address));
    await object.close();
    if (namespace !== undefined && object.record.namespace !== namespace) {
      throw new ServiceError("file_not_found");
    }
    await this.#cache.forget(address);
    await stored(() => this.#store.delete(address));
  }

  async list(session: string, namespace: string | undefined, detail: FileDetail): Promise<unknown[]> {
    const records = await stored(() => this.#store.list(session, MAX_LISTED));
    const own = records.filter((record) => namespace === undefined || record.namespace === namespace);
    if (own.length === 0) throw new ServiceError("file_not_found");
    return own.map((record) => listed(record, detail));
  }
}
