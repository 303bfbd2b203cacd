import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type LedgerRecord, ledgerKey, openGrant, sealGrant } from "@svc/capabilities";
import { newId, type RegisteredGrant } from "@svc/contracts";
import { asRunner, type Call, keys, startGateway } from "@svc/test-kit/components/gateway";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { made, now, redis, useGateway } from "../support/own-gateway.ts";

useGateway();

const recordOf = async ({ grant_id }: RegisteredGrant) =>
  JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "null") as LedgerRecord;

/** What a call was answered: ok, or the reason of the refusal. */
const outcome = async (call: Call): Promise<string> => {
  const answer = await made.call(call);
  if (answer.status === 200) return "ok";
  const { error, reason, ledger_reason } = answer.json();
  return `${answer.status} ${ledger_reason ?? reason ?? error}`;
};
const race = async (calls: Call[]) => {
  const counts: Record<string, number> = {};
  for (const answer of await Promise.all(calls.map(outcome))) counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
};
const clients = <T>(make: () => T): T[] => Array.from({ length: 64 }, make);

/** Sends the head of an upload and half of its body. */
function startSending(grant: RegisteredGrant, id: string, bytes: number): Socket {
  const { path, headers } = asRunner(grant).write("", { id });
  const { hostname, port } = new URL(made.gateway.url);
  const socket = connect(Number(port), hostname);
  const head = Object.entries({ ...headers, host: "gateway", "content-length": String(bytes) });
  socket.write(`PUT ${path} HTTP/1.1\r\n${head.map((line) => line.join(": ")).join("\r\n")}\r\n\r\n`);
  socket.write("x".repeat(bytes / 2));
  return socket;
}

describe("a call that passes", () => {
  it("is counted as what it is, one that is refused is not", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const runner = asRunner(grant);
    const id = newId();
    expect(await outcome(runner.list())).toBe("ok");
    expect(await outcome(runner.read())).toBe("ok");
    expect(await outcome(runner.write("12345", { id }))).toBe("ok");
    const counted = {
      request_count: 3,
      read_count: 2,
      upload_count: 1,
      tool_call_count: 0,
      uploaded_bytes: 5,
      output_file_ids: [id],
    };
    expect(await recordOf(grant)).toMatchObject(counted);
    expect(await outcome(runner.write("1", { id }))).toBe("403 file_id_reused");
    expect(await outcome(runner.write("1", { id: "short" }))).toBe("400 invalid_id");
    expect(await outcome(runner.write("1", { name: "/x" }))).toBe("400 invalid_file_name");
    expect(await outcome(runner.list(grant.payload.output_session_id))).toBe("403 scope_mismatch");
    expect(await outcome(runner.list("x"))).toBe("400 malformed");
    expect(await recordOf(grant)).toMatchObject({ ...counted, rev: 3 });
  });

  it("is told of the ledger before the scope, and of the scope before the budget", async () => {
    const input = await made.upload("a", "1");
    const spent = await made.register([input], { max_requests: 0 });
    expect(await outcome(asRunner(spent).read())).toBe("403 request_budget");
    expect(await outcome(asRunner(spent).list("x"))).toBe("400 malformed");
    await made.postJson(`/internal/egress-grants/${spent.grant_id}/revoke`, {});
    expect(await outcome(asRunner(spent).list("x"))).toBe("403 revoked");
  });
});

describe("64 clients at once", () => {
  it("share the last requests exactly", async () => {
    const grant = await made.register([await made.upload("a", "1")], { max_requests: 10 });
    expect(await race(clients(() => asRunner(grant).read()))).toEqual({ ok: 10, "403 request_budget": 54 });
    expect(await recordOf(grant)).toMatchObject({ status: "active", request_count: 10, read_count: 10 });
  });

  it("share the last bytes exactly", async () => {
    const grant = await made.register([], { max_upload_bytes: 1000, max_output_files: 100 });
    const answers = await race(clients(() => asRunner(grant).write("x".repeat(70))));
    expect(answers).toEqual({ ok: 14, "403 upload_bytes": 50 });
    expect(await outcome(asRunner(grant).write("x".repeat(21)))).toBe("403 upload_bytes");
    expect(await outcome(asRunner(grant).write("x".repeat(20)))).toBe("ok");
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 1000, upload_count: 15 });
  });

  it("share the last file", async () => {
    const grant = await made.register([], { max_output_files: 1 });
    expect(await race(clients(() => asRunner(grant).write("x")))).toEqual({
      ok: 1,
      "403 output_files": 63,
    });
  });

  it("are stopped by a revocation in their middle", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const first = race(clients(() => asRunner(grant).read()));
    const revoked = made.postJson(`/internal/egress-grants/${grant.grant_id}/revoke`, { reason: "timeout" });
    expect((await revoked).status).toBe(204);
    expect(await race(clients(() => asRunner(grant).read()))).toEqual({ "403 revoked": 64 });
    const { ok = 0 } = await first;
    expect(await recordOf(grant)).toMatchObject({
      status: "revoked",
      revoke_reason: "timeout",
      read_count: ok,
    });
  });
});

describe("an upload that fails", () => {
  const nothing = { upload_count: 0, uploaded_bytes: 0, output_file_ids: [] };

  it("because storage is away gives everything back, and the same id can be stored later", async () => {
    const grant = await made.register([], { max_upload_bytes: 5, max_output_files: 1 });
    const id = newId();
    await made.files.kill();
    expect(await outcome(asRunner(grant).write("12345", { id }))).toBe("503 storage_unavailable");
    expect(await recordOf(grant)).toMatchObject({ ...nothing, request_count: 1 });
    await made.files.restart();
    expect(await outcome(asRunner(grant).write("12345", { id }))).toBe("ok");
    expect(await recordOf(grant)).toMatchObject({
      uploaded_bytes: 5,
      output_file_ids: [id],
      request_count: 2,
    });
  });

  it("because its body breaks off is reserved while it runs, then gives everything back", async () => {
    const grant = await made.register([], { max_upload_bytes: 1000 });
    const id = newId();
    const slow = startSending(grant, id, 1000);
    await expect.poll(async () => (await recordOf(grant)).uploaded_bytes).toBe(1000);
    expect(await outcome(asRunner(grant).write("x"))).toBe("403 upload_bytes");
    slow.destroy();
    await expect.poll(() => recordOf(grant)).toMatchObject(nothing);
    expect(await outcome(asRunner(grant).write("x".repeat(1000), { id }))).toBe("ok");
  });

  it("without an answer stays charged, since it may be stored, and its repeat costs a request", async () => {
    const grant = await made.register([], { max_upload_bytes: 5, max_output_files: 1 });
    const id = newId();
    process.kill(made.files.pid, "SIGSTOP");
    const unanswered = outcome(asRunner(grant).write("12345", { id }));
    await expect.poll(async () => (await recordOf(grant)).uploaded_bytes).toBe(5);
    await sleep(100);
    await made.files.kill();
    expect(await unanswered).toBe("503 storage_unavailable");
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 5, output_file_ids: [id] });
    await made.files.restart();
    expect(await outcome(asRunner(grant).write("12345"))).toBe("403 output_files");
    expect(await outcome(asRunner(grant).write("12345", { id }))).toBe("ok");
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 5, upload_count: 1, request_count: 2 });
  });
});

describe("an upload that is repeated", () => {
  it("after its answer was lost is answered as the first time, and costs its request only", async () => {
    const grant = await made.register([], { max_upload_bytes: 5, max_output_files: 1, max_requests: 3 });
    const [runner, id] = [asRunner(grant), newId()];
    const first = await made.call(runner.write("12345", { id }));
    const again = await made.call(runner.write("12345", { id }));
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.json()).toEqual(first.json());
    const charged = { uploaded_bytes: 5, upload_count: 1, output_file_ids: [id] };
    expect(await recordOf(grant)).toMatchObject({ ...charged, request_count: 2 });
    expect(await outcome(runner.write("54321", { id }))).toBe("403 file_id_reused");
    expect(await recordOf(grant)).toMatchObject({ ...charged, request_count: 3 });
    expect(await outcome(runner.write("12345", { id }))).toBe("403 request_budget");
  });

  it("with other bytes, another name or another type is refused, and the first one stays", async () => {
    const grant = await made.register([]);
    const [runner, id] = [asRunner(grant), newId()];
    expect(await outcome(runner.write("12345", { id }))).toBe("ok");
    for (const other of [
      runner.write("54321", { id }),
      runner.write("123456", { id }),
      runner.write("12345", { id, name: "other.txt" }),
      runner.write("12345", { id, extra: { "content-type": "text/html" } }),
    ]) {
      expect(await outcome(other)).toBe("403 file_id_reused");
    }
    expect(await outcome(runner.write("12345", { id }))).toBe("ok");
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 5, upload_count: 1 });
  });

  it("while its first try runs stays charged when that one breaks off", async () => {
    const grant = await made.register([], { max_upload_bytes: 1000, max_output_files: 1 });
    const id = newId();
    const slow = startSending(grant, id, 1000);
    await expect.poll(async () => (await recordOf(grant)).uploaded_bytes).toBe(1000);
    expect(await outcome(asRunner(grant).write("x".repeat(1000), { id }))).toBe("ok");
    const triesOf = async () => (await recordOf(grant)).uploads[0]?.tries.length;
    expect(await triesOf()).toBe(2);
    slow.destroy();
    await expect.poll(triesOf).toBe(1);
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 1000, output_file_ids: [id] });
    expect(await outcome(asRunner(grant).write("x"))).toBe("403 output_files");
  });

  it("by many at once, all with other bytes, is stored once and charged once", async () => {
    const grant = await made.register([], { max_upload_bytes: 4, max_output_files: 1 });
    const id = newId();
    let client = 1000;
    const answers = await race(clients(() => asRunner(grant).write(String(client++), { id })));
    expect(answers).toEqual({ ok: 1, "403 file_id_reused": 63 });
    expect(await recordOf(grant)).toMatchObject({ uploaded_bytes: 4, upload_count: 1 });
  });
});

describe("the snapshot of a session's state", () => {
  it("has a size limit of its own and costs its bytes, but no request and no output file", async () => {
    const id = newId();
    const strict = await startGateway({
      EGRESS_GATEWAY_MAX_FILE_BYTES: "10",
      SVC_SESSION_STATE_MAX_BYTES: "20",
    });
    const store = new Redis(strict.redis.socket).on("error", () => {});
    try {
      const budget = { max_requests: 0, max_output_files: 0, max_upload_bytes: 100 };
      const grant = await strict.register([], { ...budget, snapshot_object_id: id });
      const write = async (bytes: number, to = id) =>
        (await strict.call(asRunner(grant).write("x".repeat(bytes), { id: to }))).json().error ?? "ok";
      expect(await write(11, newId())).toBe("file_too_large");
      expect(await write(21)).toBe("file_too_large");
      expect(await write(1, newId())).toBe("egress_ledger_refused");
      expect(await write(20)).toBe("ok");
      const record = JSON.parse((await store.get(ledgerKey(grant.grant_id))) ?? "null");
      expect(record).toMatchObject({
        snapshot_object_id: id,
        request_count: 0,
        upload_count: 1,
        uploaded_bytes: 20,
        output_file_ids: [],
      });
      expect(JSON.stringify(grant.executionManifestClaims)).not.toContain(id);
    } finally {
      store.disconnect();
      await strict.stop();
    }
  });
});

describe("where no record is required", () => {
  it("a grant without one is let through, and one with a record is held to it", async () => {
    const lax = await startGateway({ SVC_EGRESS_LEDGER_REQUIRED: "false" });
    const store = new Redis(lax.redis.socket).on("error", () => {});
    try {
      const input = await lax.upload("a", "1");
      const grant = await lax.register([input], { max_requests: 1 });
      const read = async (from: RegisteredGrant) => (await lax.call(asRunner(from).read())).status;
      expect([await read(grant), await read(grant)]).toEqual([200, 403]);
      await store.del(ledgerKey(grant.grant_id));
      expect([await read(grant), await read(grant)]).toEqual([200, 200]);
      expect(await store.exists(ledgerKey(grant.grant_id))).toBe(0);
      expect((await lax.call(asRunner(grant).list("x"))).status).toBe(400);
    } finally {
      store.disconnect();
      await lax.stop();
    }
  });
});

describe("the result of a restore", () => {
  const report = async (id: string, body: unknown) => {
    const answer = await made.postJson(`/internal/egress-grants/${id}/restore-result`, body);
    return { status: answer.status, body: answer.json() };
  };

  it("comes back with real ids for handles, and with what the program printed as it was", async () => {
    const input = await made.upload("a", "1");
    const grant = await made.register([input]);
    const [file] = grant.payload.files;
    const real = openGrant(keys, grant.egressGrantToken, now());
    const plain = { id: newId(), name: "new.txt" };
    const result = {
      stdout: file?.id,
      code: 0,
      files: [
        { id: file?.id, name: "a", storage_session_id: file?.storage_session_id },
        { ...plain, storage_session_id: grant.payload.output_session_id, modified_from: { id: file?.id } },
      ],
    };
    expect(await report(grant.grant_id, { result, egressGrantToken: grant.egressGrantToken })).toEqual({
      status: 200,
      body: {
        result: {
          stdout: file?.id,
          code: 0,
          files: [
            { id: input.id, name: "a", storage_session_id: input.session_id },
            { ...plain, storage_session_id: real.output_session_id, modified_from: { id: input.id } },
          ],
        },
      },
    });
  });

  it("is kept in the record, also of a revoked grant, which stays revoked", async () => {
    const grant = await made.register([]);
    await made.postJson(`/internal/egress-grants/${grant.grant_id}/revoke`, {});
    const told = { restored: false, session_state_restore_failed: true, reason: "damaged" };
    expect(await report(grant.grant_id, told)).toEqual({
      status: 200,
      body: { grant_id: grant.grant_id, restored: false, recorded: true },
    });
    expect(await recordOf(grant)).toMatchObject({ status: "revoked", restore_outcome: told });
    const both = { restored: true, result: {}, egressGrantToken: grant.egressGrantToken };
    expect((await report(grant.grant_id, both)).body).toEqual({
      result: {},
      grant_id: grant.grant_id,
      restored: true,
      recorded: true,
    });
  });

  it("is refused for foreign handles and grants, unknown records, and bodies without sense", async () => {
    const [grant, other] = [await made.register([await made.upload("a", "1")]), await made.register([])];
    const token = grant.egressGrantToken;
    const refused = async (id: string, body: unknown) => {
      const { status, body: said } = await report(id, body);
      return `${status} ${said.ledger_reason ?? said.reason ?? said.error}`;
    };
    const result = { files: [{ id: grant.payload.files[0]?.id }] };
    expect(await refused(other.grant_id, { result, egressGrantToken: token })).toBe("403 scope_mismatch");
    expect(await refused(other.grant_id, { result, egressGrantToken: other.egressGrantToken })).toBe(
      "403 scope_mismatch",
    );
    expect(await refused(grant.grant_id, { result: { id: "ceg1.a.b.c" }, egressGrantToken: token })).toBe(
      "400 malformed",
    );
    expect(await refused(grant.grant_id, { result: { id: token }, egressGrantToken: token })).toBe(
      "403 wrong_type",
    );
    const late = openGrant(keys, token, now());
    const old = sealGrant(keys, { ...late, iat: now() - 500, exp: now() - 100 });
    expect(await refused(grant.grant_id, { result, egressGrantToken: old })).toBe("401 expired");
    expect(await refused(newId(), { restored: true })).toBe("403 missing");
    for (const body of [{}, { result }, { reason: "x" }, { restored: "yes" }, { result: [] }]) {
      expect(await refused(grant.grant_id, body)).toBe("400 invalid_request");
    }
    const answer = await made.call({
      method: "POST",
      path: `/internal/egress-grants/${grant.grant_id}/restore-result`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ restored: true }),
    });
    expect(answer.status).toBe(401);
  });
});
