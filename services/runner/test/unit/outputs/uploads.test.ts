import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { quotaExceeded, ServiceError } from "@svc/contracts";
import type { PlannedUpload } from "@svc/runner/outputs/outputs";
import { storeOutputs, type UploadDeps } from "@svc/runner/outputs/uploads";
import { describe, expect, it } from "vitest";

const LARGE = 3 * 2 ** 20;
const CHUNK = 2 ** 18;

/** A jail's connection: it sends one file after the other, and the next one only when the last was read to its end. */
function jailWith(sizes: readonly number[]): UploadDeps["jail"] {
  let unread = 0;
  async function* body(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; left -= CHUNK) {
      const bytes = Math.min(left, CHUNK);
      unread -= bytes;
      yield Buffer.alloc(bytes, 1);
    }
  }
  return {
    fetch: async (number) => {
      if (unread !== 0) throw new Error("the bytes of another file would come");
      const size = sizes[number];
      if (size === undefined) return undefined;
      unread = size;
      return { size, body: body(size) };
    },
  };
}

type Store = UploadDeps["gateway"]["store"];
type Stored = Map<string, number>;

async function readAll(body: unknown): Promise<number> {
  if (Buffer.isBuffer(body)) return body.length;
  if (body instanceof Readable) return (await buffer(body)).length;
  throw new Error("not a body");
}

function gatewayInto(stored: Stored): Store {
  return async (_run, _session, file, open) => {
    const bytes = await readAll(await open());
    await new Promise((resolve) => setImmediate(resolve));
    stored.set(file.name, bytes);
  };
}

const planOf = (sizes: readonly number[]): PlannedUpload[] =>
  sizes.map((size, number) => ({ name: `f${number}`, size, number }));

function deps(jail: UploadDeps["jail"], store: Store, change: Partial<UploadDeps> = {}): UploadDeps {
  return {
    gateway: { store },
    run: { grant: "grant", requestId: "request", signal: new AbortController().signal },
    jail,
    outputSession: "output-session",
    concurrency: 4,
    onFailure: () => {},
    ...change,
  };
}

describe("storeOutputs", () => {
  it("stores small, large and empty files whole and reports them in the order of the plan", async () => {
    const sizes = [5, LARGE, 0, 100, LARGE + 1, 7];
    const stored: Stored = new Map();
    const report = await storeOutputs(planOf(sizes), deps(jailWith(sizes), gatewayInto(stored)));
    expect(report.files.map(({ name }) => name)).toEqual(["f0", "f1", "f2", "f3", "f4", "f5"]);
    expect(report).toMatchObject({ attempted: 6, failed: 0, omitted: [] });
    for (const [at, size] of sizes.entries()) expect(stored.get(`f${at}`)).toBe(size);
    expect(new Set(report.files.map(({ id }) => id)).size).toBe(6);
  });

  it("stores the file of an empty directory without asking the jail", async () => {
    const stored: Stored = new Map();
    const plan = [{ name: "d/.dirkeep", size: 0 }];
    await storeOutputs(plan, deps(jailWith([]), gatewayInto(stored)));
    expect(stored.get("d/.dirkeep")).toBe(0);
  });

  it("says what a changed input was", async () => {
    const modifiedFrom = { name: "f0", id: "old", storage_session_id: "older" };
    const plan = planOf([1]).map((file) => ({ ...file, modifiedFrom }));
    const { files } = await storeOutputs(plan, deps(jailWith([1]), gatewayInto(new Map())));
    expect(files[0]).toMatchObject({
      name: "f0",
      storage_session_id: "output-session",
      modified_from: { id: "old", storage_session_id: "older" },
    });
  });

  it("reports files that cannot be stored or read, in order, and stores the others", async () => {
    const sizes = [1, LARGE, 2, LARGE, 3];
    const failures: unknown[] = [];
    const good = gatewayInto(new Map());
    const store: Store = async (...args) => {
      if (["f1", "f4"].includes(args[2].name)) throw new ServiceError("storage_unavailable");
      await good(...args);
    };
    const plan = [...planOf(sizes), { name: "gone", size: 9, number: 99 }];
    const onFailure = (error: unknown) => void failures.push(error);
    const report = await storeOutputs(plan, deps(jailWith(sizes), store, { onFailure }));
    expect(report.files.map(({ name }) => name)).toEqual(["f0", "f2", "f3"]);
    expect(report.omitted).toEqual(["f1", "f4", "gone"].map((name) => ({ name, reason: "upload_failed" })));
    expect(report).toMatchObject({ attempted: 6, failed: 3 });
    expect(failures).toHaveLength(3);
  });

  it("a file without room in the quota is omitted as after a limit, and counts as no failure", async () => {
    const quota = { kind: "files", resource: "bytes", used: 10, limit: 10, asked: 2 } as const;
    const failures: unknown[] = [];
    const good = gatewayInto(new Map());
    const store: Store = async (...args) => {
      if (args[2].name === "f1") throw quotaExceeded(quota);
      if (args[2].name === "f2") throw new ServiceError("storage_unavailable");
      await good(...args);
    };
    const onFailure = (error: unknown) => void failures.push(error);
    const report = await storeOutputs(planOf([1, 2, 3]), deps(jailWith([1, 2, 3]), store, { onFailure }));
    expect(report).toMatchObject({ files: [{ name: "f0" }], attempted: 2, failed: 1 });
    expect(report.omitted).toEqual([
      { name: "f1", reason: "quota", quota },
      { name: "f2", reason: "upload_failed" },
    ]);
    expect(failures).toHaveLength(1);
  });

  it("an upload that breaks off in the middle of a large file leaves the next file whole", async () => {
    const sizes = [LARGE, LARGE, 10];
    const stored: Stored = new Map();
    const good = gatewayInto(stored);
    const store: Store = async (...args) => {
      if (args[2].name !== "f0") return good(...args);
      const body = (await args[3]()) as Readable;
      for await (const _ of body) break;
      throw new ServiceError("egress_grant_refused");
    };
    const report = await storeOutputs(planOf(sizes), deps(jailWith(sizes), store));
    expect(report.omitted).toEqual([{ name: "f0", reason: "upload_failed" }]);
    expect([stored.get("f1"), stored.get("f2")]).toEqual([LARGE, 10]);
  });

  it("a large file can be sent again from its beginning", async () => {
    const stored: Stored = new Map();
    const good = gatewayInto(stored);
    const store: Store = async (...args) => {
      for await (const _ of (await args[3]()) as Readable) break;
      return good(...args);
    };
    await storeOutputs(planOf([LARGE]), deps(jailWith([LARGE]), store));
    expect(stored.get("f0")).toBe(LARGE);
  });

  it("keeps no more uploads in flight than allowed", async () => {
    let [flying, most] = [0, 0];
    const store: Store = async () => {
      most = Math.max(most, ++flying);
      await new Promise((resolve) => setTimeout(resolve, 1));
      flying--;
    };
    const sizes = Array.from({ length: 20 }, () => 1);
    await storeOutputs(planOf(sizes), deps(jailWith(sizes), store, { concurrency: 3 }));
    expect(most).toBe(3);
  });

  it("ends with the caller's reason when the caller leaves, after every upload in flight has ended", async () => {
    const left = new AbortController();
    const failures: unknown[] = [];
    let flying = 0;
    const store: Store = async (run) => {
      flying++;
      await new Promise((resolve) => run.signal.addEventListener("abort", resolve));
      await new Promise((resolve) => setImmediate(resolve));
      flying--;
      throw run.signal.reason;
    };
    const jail: UploadDeps["jail"] = {
      fetch: async (number) => {
        if (number === 2) {
          left.abort(new Error("the caller left"));
          throw new Error("the connection is closed");
        }
        return jailWith([1, 1]).fetch(number);
      },
    };
    const run = { grant: "grant", requestId: "request", signal: left.signal };
    const onFailure = (error: unknown) => void failures.push(error);
    const stored = storeOutputs(planOf([1, 1, 1, 1]), deps(jail, store, { run, onFailure }));
    await expect(stored).rejects.toThrow();
    expect({ flying, failures }).toEqual({ flying: 0, failures: [] });
  });
});
