/** Copies of inputs: real runner, jail, gateway and storage. They save bytes, and allow nothing that a grant does not. */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson, signManifest } from "@svc/capabilities";
import { INTERNAL_TOKEN_HEADER, NAMESPACE_HEADER, newId, type RegisteredGrant } from "@svc/contracts";
import { INTERNAL_TOKEN, type Input, NAMESPACE } from "@svc/test-kit/components/gateway";
import { copiesOf } from "@svc/test-kit/components/input-copies";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Runner, requestOf, startSystemOfRunner } from "../support/runner.ts";

const LARGE = 1_500_000;
const CACHE_BYTES = 4_000_000;
const CHECKSUMS = "sha256sum -- *.bin | cut -d' ' -f1";

let made: Awaited<ReturnType<typeof startSystemOfRunner>>;
let runner: Runner;
let store: Redis;
const start = (env: Record<string, string> = {}) =>
  made.startRunner({
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: made.keys.publicKey,
    SANDBOX_INPUT_CACHE_BYTES: String(CACHE_BYTES),
    ...env,
  });

beforeAll(async () => {
  made = await startSystemOfRunner({ slots: 4 });
  runner = await start();
  store = new Redis(made.gateway.redis.socket).on("error", () => {});
});
afterAll(async () => {
  store?.disconnect();
  await made?.stop();
});

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const upload = (content: Buffer, readOnly = false) =>
  made.gateway.upload("in.bin", content, newId(), readOnly);

/** Posts a signed request; unless told otherwise its program prints the checksums of its inputs. */
function send(grant: RegisteredGrant, { by = runner, files = grant.payload.files, code = CHECKSUMS } = {}) {
  const body = requestOf(grant, code);
  const [entry] = body.files;
  const request = { ...body, files: [entry, ...files] };
  const bound = { body: canonicalJson(request), grant: grant.egressGrantToken };
  const now = Math.floor(Date.now() / 1000);
  const execution_manifest = signManifest(made.keys.signing, grant.executionManifestClaims, bound, {
    now,
    ttl: 300,
  });
  return by({
    method: "POST",
    path: "/execute",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...request, egress_grant: grant.egressGrantToken, execution_manifest }),
  });
}

async function seen(inputs: Input[], by = runner): Promise<string[]> {
  const answer = await send(await made.gateway.register(inputs), { by });
  expect(answer.status, answer.bytes.toString()).toBe(200);
  return String(answer.json().stdout).trim().split("\n");
}

/** Hits and misses up to now. */
async function counts(by = runner): Promise<[hits: number, misses: number]> {
  const text = (await by({ method: "GET", path: "/metrics" })).bytes.toString();
  const countOf = (name: string) =>
    Number(new RegExp(`^svc_runner_input_cache_${name} (\\d+)$`, "m").exec(text)?.[1]);
  return [countOf("hits_total"), countOf("misses_total")];
}

/** How many hits and misses came with it. */
async function countedIn(work: () => Promise<unknown>, by = runner): Promise<[number, number]> {
  const [hits, misses] = await counts(by);
  await work();
  const [hitsAfter, missesAfter] = await counts(by);
  return [hitsAfter - hits, missesAfter - misses];
}

const object = (method: "DELETE" | "PUT", { session_id, id }: Input, body?: Buffer) =>
  made.gateway.fileCall({
    method,
    path: `/sessions/${session_id}/objects/${id}`,
    headers: {
      [INTERNAL_TOKEN_HEADER]: INTERNAL_TOKEN,
      [NAMESPACE_HEADER]: NAMESPACE,
      ...(body && { "content-type": "text/csv", "x-original-filename": "in.bin" }),
    },
    ...(body && { body }),
  });

const refusedAs = async (answer: ReturnType<typeof send>) => {
  const { status, json } = await answer;
  return [status, json().error];
};

describe("a large input", () => {
  it("is fetched once, and comes from the copy under each further grant", async () => {
    const content = randomBytes(LARGE);
    const input = await upload(content);
    expect(await countedIn(async () => expect(await seen([input])).toEqual([sha256(content)]))).toEqual([
      0, 1,
    ]);
    for (let time = 0; time < 2; time++) {
      expect(await countedIn(async () => expect(await seen([input])).toEqual([sha256(content)]))).toEqual([
        1, 0,
      ]);
    }
  });

  it("costs each grant the same requests, and stays read-only", async () => {
    const input = await upload(randomBytes(LARGE), true);
    const used: unknown[] = [];
    for (let time = 0; time < 2; time++) {
      const grant = await made.gateway.register([input]);
      const answer = await send(grant, { code: "echo x >> in.bin || echo unchangeable" });
      expect(answer.json().stdout).toBe("unchangeable\n");
      const record = await store.get(`svc:egress:grant:${grant.grant_id}`);
      const { request_count, read_count } = JSON.parse(record ?? "{}") as Record<string, number>;
      used.push([request_count, read_count]);
    }
    expect(used[0]).toEqual([2, 2]);
    expect(used[1]).toEqual(used[0]);
  });

  it("that is small is not copied", async () => {
    const input = await upload(randomBytes(100_000));
    const twice = async () => {
      for (let time = 0; time < 2; time++) await seen([input]);
    };
    expect(await countedIn(twice)).toEqual([0, 0]);
  });

  it("that several runs fetch at once is right in all of them, and copied", async () => {
    const content = randomBytes(LARGE);
    const input = await upload(content);
    const all = await Promise.all(Array.from({ length: 4 }, () => seen([input])));
    expect(all).toEqual(Array(4).fill([sha256(content)]));
    expect(await countedIn(() => seen([input]))).toEqual([1, 0]);
  });

  it("makes room for another, within the size of the cache", async () => {
    const inputs = await Promise.all(Array.from({ length: 4 }, () => upload(randomBytes(LARGE))));
    for (const input of inputs) await seen([input]);
    const [first, , , last] = inputs as [Input, Input, Input, Input];
    expect(await countedIn(() => seen([last]))).toEqual([1, 0]);
    expect(await countedIn(() => seen([first]))).toEqual([0, 1]);
    const sizes = copiesOf(runner.pid).map((path) => readFileSync(path).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(CACHE_BYTES);
    expect(sizes.length).toBeGreaterThan(0);
  });
});

describe("a copy allows nothing", () => {
  it("when the object is gone, and gives nothing of the old when another has its id", async () => {
    const [old, other] = [randomBytes(LARGE), randomBytes(LARGE)];
    const input = await upload(old);
    await seen([input]);
    expect((await object("DELETE", input)).status).toBe(200);
    expect(await refusedAs(send(await made.gateway.register([input])))).toEqual([502, "input_unavailable"]);
    expect((await object("PUT", input, other)).status).toBe(200);
    expect(await seen([input])).toEqual([sha256(other)]);
    expect(await countedIn(async () => expect(await seen([input])).toEqual([sha256(other)]))).toEqual([1, 0]);
  });

  it("under a revoked grant, with a spent budget, or with handles of another grant", async () => {
    const input = await upload(randomBytes(LARGE));
    await seen([input]);
    // The grant is refused, which says nothing of the object.
    const NOT_NOW = [503, "storage_unavailable"];
    const revoked = await made.gateway.register([input]);
    await made.gateway.postJson(`/internal/egress-grants/${revoked.grant_id}/revoke`, {});
    expect(await refusedAs(send(revoked))).toEqual(NOT_NOW);
    const spent = await made.gateway.register([input], { max_requests: 1 });
    expect(await refusedAs(send(spent))).toEqual(NOT_NOW);
    const theirs = await made.gateway.register([input]);
    const own = await made.gateway.register([await upload(randomBytes(LARGE))]);
    const { input_files, read_sessions } = theirs.executionManifestClaims;
    const executionManifestClaims = { ...own.executionManifestClaims, input_files, read_sessions };
    const mixed = { ...own, executionManifestClaims };
    expect(await refusedAs(send(mixed, { files: theirs.payload.files }))).toEqual(NOT_NOW);
    expect(await countedIn(() => seen([input]))).toEqual([1, 0]);
  });

  it("with the key of another object: what was granted is read", async () => {
    const [mine, theirs] = [randomBytes(LARGE), randomBytes(LARGE)];
    const [my, their] = [await upload(mine), await upload(theirs)];
    await seen([their]);
    const copy_key = (await made.gateway.register([their])).payload.files[0]?.copy_key ?? "";
    expect(copy_key).toHaveLength(43);
    const grant = await made.gateway.register([my]);
    const files = grant.payload.files.map((file) => ({ ...file, copy_key }));
    expect((await send(grant, { files })).json().stdout).toBe(`${sha256(mine)}\n`);
    expect(await seen([their])).toEqual([sha256(theirs)]);
  });
});

describe("the runner does without", () => {
  it.each([
    ["changed", (path: string) => writeFileSync(path, "x", { flag: "r+" })],
    ["cut off", (path: string) => truncateSync(path, LARGE - 1)],
  ])("a copy that was %s, and makes a new one", async (_what, spoil) => {
    const own = await start();
    const content = randomBytes(LARGE);
    const inputs = [await upload(content), await made.gateway.upload("small.bin", "small")];
    const sums = [sha256(content), sha256(Buffer.from("small"))];
    await seen(inputs, own);
    const [path] = copiesOf(own.pid);
    if (path === undefined) throw new Error("there is no copy");
    spoil(path);
    const spoiled = async () => expect(await seen(inputs, own)).toEqual(sums);
    expect(await countedIn(spoiled, own)).toEqual([1, 1]);
    expect(await countedIn(() => seen(inputs, own), own)).toEqual([1, 0]);
  });

  it("a folder that is not there", async () => {
    const own = await start({ TMPDIR: "/proc/nowhere" });
    const content = randomBytes(LARGE);
    const input = await upload(content);
    const twice = async () => {
      for (let time = 0; time < 2; time++) expect(await seen([input], own)).toEqual([sha256(content)]);
    };
    expect(await countedIn(twice, own)).toEqual([0, 2]);
  });

  it("room on the disk", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]);
    try {
      const own = await start({ TMPDIR: folder });
      const [content, fitting] = [randomBytes(LARGE), randomBytes(700_000)];
      const [input, small] = [await upload(content), await upload(fitting)];
      const twice = async () => {
        for (let time = 0; time < 2; time++) expect(await seen([input], own)).toEqual([sha256(content)]);
      };
      expect(await countedIn(twice, own)).toEqual([0, 2]);
      await seen([small], own);
      expect(await countedIn(() => seen([small], own), own)).toEqual([1, 0]);
    } finally {
      execFileSync("umount", ["--lazy", folder]);
      rmSync(folder, { recursive: true });
    }
  });

  it("any copies when none are wanted", async () => {
    const own = await start({ SANDBOX_INPUT_CACHE_BYTES: "0" });
    const input = await upload(randomBytes(LARGE));
    const twice = async () => {
      for (let time = 0; time < 2; time++) await seen([input], own);
    };
    expect(await countedIn(twice, own)).toEqual([0, 0]);
    expect(copiesOf(own.pid)).toEqual([]);
  });
});
