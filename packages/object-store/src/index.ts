export { FsObjectStore, type FsObjectStoreOptions } from "./fs/driver.ts";
export * from "./store.ts";
