/** Content of objects for tests, and what became of operations on them. */
import { StoreError, type StoreFailure } from "../../src/index.ts";

export async function* chunks(bytes: Uint8Array, size = 7000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export async function failure(operation: Promise<unknown>): Promise<StoreFailure | "none" | "other"> {
  try {
    await operation;
    return "none";
  } catch (error) {
    return error instanceof StoreError ? error.failure : "other";
  }
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}
