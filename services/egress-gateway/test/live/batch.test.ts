/** Several inputs in one call: each is checked and charged as if it were asked for by itself. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type LedgerRecord, ledgerKey, openGrant, sealObject, sealSession } from "@svc/capabilities";
import {
  type BatchRequest,
  decodeInputBatch,
  encodeInputBatch,
  type InputBatch,
  MAX_BATCH_BYTES,
  newId,
  type RegisteredGrant,
} from "@svc/contracts";
import { type Call, type Input, keys, startGateway } from "@svc/test-kit/components/gateway";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { made, now, redis, useGateway } from "../support/own-gateway.ts";

useGateway();

const requestFor = ({ payload }: RegisteredGrant): BatchRequest => ({
  files: payload.files.map(({ storage_session_id, id }) => ({ storage_session_id, id })),
  directories: [...new Set(payload.files.map(({ storage_session_id }) => storage_session_id))],
});
const callOf = (grant: RegisteredGrant, request: unknown = requestFor(grant)): Call => ({
  method: "POST",
  path: "/inputs",
  headers: { "content-type": "application/json", "x-svc-egress-grant": grant.egressGrantToken },
  body: JSON.stringify(request),
});
async function read(grant: RegisteredGrant, request = requestFor(grant)): Promise<InputBatch> {
  const answer = await made.call(callOf(grant, request));
  expect(answer.status, answer.bytes.toString()).toBe(200);
  return decodeInputBatch(answer.bytes, request);
}
const refusal = async (call: Call) => {
  const { status, json } = await made.call(call);
  const { error, reason, ledger_reason } = json();
  return `${status} ${ledger_reason ?? reason ?? error}`;
};
/** Requests and reads that the ledger has counted. */
const counted = async ({ grant_id }: RegisteredGrant) => {
  const record = JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "null") as LedgerRecord;
  return [record.request_count, record.read_count];
};
/** What a gateway gives back, it has given back by then. */
const SETTLED_MS = 500;
const goneInput = (): Input => ({ id: newId(), session_id: newId(), name: "gone" });

describe("a batch", () => {
  it("has the granted files and the directories of their sessions, and no ids", async () => {
    const session = newId();
    const inputs = [
      await made.upload("a.csv", "one", session),
      await made.upload("b.csv", "two", session, true),
      await made.upload("c.csv", "three"),
    ];
    const others = [await made.upload("logs/.dirkeep", "", session), await made.upload("d", "4", session)];
    const grant = await made.register(inputs);
    const batch = await read(grant);
    expect(batch.files.map((file) => [file?.content.toString(), file?.readOnly])).toEqual([
      ["one", false],
      ["two", true],
      ["three", false],
    ]);
    expect(batch.directories).toEqual([["logs/.dirkeep"], []]);
    expect(await counted(grant)).toEqual([5, 5]);
    const { bytes } = await made.call(callOf(grant));
    for (const { id, session_id } of [...inputs, ...others])
      for (const secret of [id, session_id]) expect(bytes.includes(secret)).toBe(false);
  });

  it("charges what it gives, and not what is missing", async () => {
    const inputs = [
      await made.upload("a", "1"),
      goneInput(),
      await made.upload("large", Buffer.alloc(MAX_BATCH_BYTES + 1)),
    ];
    const grant = await made.register(inputs);
    const { files, directories } = await read(grant);
    expect(files.map((file) => file?.content.length)).toEqual([1, undefined, undefined]);
    expect(directories).toEqual([[], undefined, []]);
    expect(await counted(grant)).toEqual([3, 3]);
  });

  it("costs one read where all is missing: no call is free", async () => {
    const grant = await made.register([goneInput()], { max_requests: 2 });
    const { files } = requestFor(grant);
    expect((await read(grant, { files, directories: [] })).files).toEqual([undefined]);
    await read(grant, { files: [], directories: [] });
    expect(await counted(grant)).toEqual([2, 2]);
    expect(await refusal(callOf(grant, { files, directories: [] }))).toBe("403 request_budget");
  });

  it("is refused as a whole when one of its handles is out of scope, and costs nothing then", async () => {
    const session = newId();
    const [mine, other] = [await made.upload("a", "1", session), await made.upload("b", "2", session)];
    const [grant, foreign] = [await made.register([mine]), await made.register([other])];
    const claims = openGrant(keys, grant.egressGrantToken, now());
    const [file] = requestFor(grant).files;
    if (file === undefined) throw new Error("no handle");
    const { storage_session_id } = file;
    const withFile = (id: string, of = storage_session_id) =>
      refusal(callOf(grant, { files: [file, { storage_session_id: of, id }], directories: [] }));
    const withSession = (handle: string) =>
      refusal(callOf(grant, { files: [file], directories: [storage_session_id, handle] }));
    expect(await withFile(mine.id)).toBe("400 malformed");
    expect(await withFile(storage_session_id)).toBe("403 wrong_type");
    expect(await withFile(foreign.payload.files[0]?.id ?? "")).toBe("403 scope_mismatch");
    expect(await withFile(sealObject(keys, claims, session, other.id, "b"))).toBe("403 scope_mismatch");
    expect(await withFile(file.id, foreign.payload.files[0]?.storage_session_id)).toBe("403 scope_mismatch");
    expect(await withSession(session)).toBe("400 malformed");
    expect(await withSession(grant.payload.output_session_id)).toBe("403 scope_mismatch");
    expect(await withSession(sealSession(keys, claims, newId(), "read"))).toBe("403 scope_mismatch");
    expect(await withSession(foreign.payload.files[0]?.storage_session_id ?? "")).toBe("403 scope_mismatch");
    expect(await counted(grant)).toEqual([0, 0]);
  });

  it("needs a budget for all of it, and a grant that is good", async () => {
    const inputs = [await made.upload("a", "1"), await made.upload("b", "2")];
    const short = await made.register(inputs, { max_requests: 3 });
    expect(await refusal(callOf(short))).toBe("403 request_budget");
    expect(await counted(short)).toEqual([0, 0]);
    const grant = await made.register(inputs, { max_requests: 4 });
    await read(grant);
    expect(await refusal(callOf(grant, { files: requestFor(grant).files, directories: [] }))).toBe(
      "403 request_budget",
    );
    const revoked = await made.register(inputs);
    await made.postJson(`/internal/egress-grants/${revoked.grant_id}/revoke`, {});
    expect(await refusal(callOf(revoked))).toBe("403 revoked");
    expect(await refusal({ ...callOf(grant), headers: { "content-type": "application/json" } })).toBe(
      "400 malformed",
    );
  });

  it("of another shape or size is refused", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const [file] = requestFor(grant).files;
    for (const request of [
      {},
      { files: [file] },
      { files: Array(258).fill(file), directories: [] },
      { files: [{ id: file?.id }], directories: [] },
      { files: [], directories: ["x".repeat(5000)] },
    ])
      expect(await refusal(callOf(grant, request))).toBe("400 invalid_request");
    expect(await refusal(callOf(grant, "x".repeat(2 ** 20)))).toMatch(/^413 /);
    expect(await counted(grant)).toEqual([0, 0]);
  });
});

it("a batch is charged whose runner does not wait for it", async () => {
  const asked = Promise.withResolvers<Socket>();
  const silent = createServer((request) => request.resume().once("end", () => asked.resolve(request.socket)));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const own = await startGateway({ EGRESS_GATEWAY_FILE_SERVER_URL: `http://127.0.0.1:${port}` });
  const store = new Redis(own.redis.socket).on("error", () => undefined);
  try {
    const grant = await own.register([await own.upload("a", "1")]);
    const leaving = new AbortController();
    const left = own.call({ ...callOf(grant), signal: leaving.signal });
    const dropped = once(await asked.promise, "close");
    leaving.abort();
    await Promise.all([dropped, expect(left).rejects.toThrow()]);
    await sleep(SETTLED_MS);
    const record = JSON.parse((await store.get(ledgerKey(grant.grant_id))) ?? "null") as LedgerRecord;
    expect([record.request_count, record.read_count]).toEqual([2, 2]);
  } finally {
    store.disconnect();
    await own.stop();
    silent.close();
  }
});

it.each([
  ["a batch stays an answer", 200, encodeInputBatch({ files: [undefined], directories: [[]] })],
  ["an error stays that error", 404, '{"error":"not_found"}'],
])("%s when Redis goes before reads can be given back", async (_what, status, body) => {
  const answering = createServer((request, response) => {
    request.resume().once("end", async () => {
      await own.redis.kill();
      response.writeHead(status).end(body);
    });
  });
  await new Promise<void>((resolve) => answering.listen(0, "127.0.0.1", resolve));
  const { port } = answering.address() as AddressInfo;
  const own = await startGateway({ EGRESS_GATEWAY_FILE_SERVER_URL: `http://127.0.0.1:${port}` });
  try {
    const answer = await own.call(callOf(await own.register([await own.upload("a", "1")])));
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.bytes).toEqual(body);
    else expect(answer.json().error).toBe("not_found");
  } finally {
    await own.stop();
    answering.close().closeAllConnections();
  }
});

describe("without a file server that answers", () => {
  it("it costs nothing: one that is away, or of an older version", async () => {
    const older = createServer((request, response) => {
      request.resume().once("end", () => response.writeHead(404).end('{"error":"not_found"}'));
    });
    await new Promise<void>((resolve) => older.listen(0, "127.0.0.1", resolve));
    const port = (address: unknown) => (address as AddressInfo).port;
    const own = await startGateway({
      EGRESS_GATEWAY_FILE_SERVER_URL: `http://127.0.0.1:${port(older.address())}`,
    });
    try {
      const grant = await own.register([await own.upload("a", "1")]);
      const countedBy = async () => {
        const { status } = await own.call(callOf(grant));
        const store = new Redis(own.redis.socket).on("error", () => undefined);
        const record = JSON.parse((await store.get(ledgerKey(grant.grant_id))) ?? "null") as LedgerRecord;
        store.disconnect();
        return [status, record.request_count, record.read_count];
      };
      expect(await countedBy()).toEqual([404, 0, 0]);
      older.closeAllConnections();
      await new Promise((resolve) => older.close(resolve));
      expect(await countedBy()).toEqual([503, 0, 0]);
    } finally {
      await own.stop();
      older.close();
    }
  });
});
