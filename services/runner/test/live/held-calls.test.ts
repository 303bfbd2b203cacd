/** Calls that are held for a program, recorded at a real gateway. */
import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Execution,
  startToolGateway,
  type ToolGateway,
} from "../../../egress-gateway/test/support/tool-calls.ts";
import { HeldCalls } from "../../src/programmatic/held-calls.ts";
import { type ToolAnswer, ToolUpstream } from "../../src/programmatic/upstream.ts";

const RECORDED_MS = 10_000;
let made: ToolGateway;
let store: Redis;
let upstream: ToolUpstream;
beforeAll(async () => {
  made = await startToolGateway();
  store = new Redis(made.redis.socket).on("error", () => {});
  upstream = new ToolUpstream(made.url, 100);
});
afterAll(async () => {
  await upstream.close();
  store.disconnect();
  await made.stop();
});

const reply = { result: () => undefined, failure: () => undefined, refuse: () => undefined };
const idsCharged = async ({ grantId }: Execution) =>
  (JSON.parse((await store.get(ledgerKey(grantId))) ?? "null") as LedgerRecord).tool_call_ids.sort();

/** Holds a call of each tool, named a, b, c and so on. */
function hold(execution: Execution, ...tools: string[]) {
  const heard: [id: string, kind: ToolAnswer["kind"]][] = [];
  const calls = new HeldCalls({
    upstream,
    sender: { token: execution.sealed, executionId: execution.execution, requestId: "r" },
    maxBytes: 1000,
    signal: new AbortController().signal,
    onAnswer: (id, _reply, { kind }) => heard.push([id, kind]),
    onError: (error) => {
      throw error;
    },
  });
  const ids = tools.map((name, at) => {
    const [id, text] = [String.fromCharCode(97 + at), JSON.stringify({ tool_name: name, input: {} })];
    calls.add(id, { name, input: {}, text }, text.length, reply);
    return id;
  });
  return { calls, ids, heard };
}

describe("held calls", () => {
  it("are recorded and charged although their results come before they are sent", async () => {
    const execution = await made.start();
    const { calls, ids, heard } = hold(execution, "add", "add", "look up");
    calls.paused();
    expect(ids.map((id) => calls.take(id))).toEqual([reply, reply, reply]);
    await calls.recorded(RECORDED_MS);
    calls.unpaused();
    expect(await idsCharged(execution)).toEqual(ids);
    expect((await made.server.pending(execution)).pending_calls.map(({ call_id }) => call_id)).toEqual(ids);
    expect([heard, calls.bytes]).toEqual([[], 0]);
  });

  it("are recorded once, however often the program pauses", async () => {
    const execution = await made.start();
    const { calls, ids } = hold(execution, "add", "add");
    for (let pauses = 0; pauses < 3; pauses++) {
      calls.paused();
      calls.unpaused();
    }
    await calls.recorded(RECORDED_MS);
    const record = JSON.parse((await store.get(ledgerKey(execution.grantId))) ?? "null") as LedgerRecord;
    expect(record).toMatchObject({ rev: 1, tool_call_ids: ids });
  });

  it("have each its own outcome when one of them is refused", async () => {
    const execution = await made.start();
    const { calls, heard } = hold(execution, "add", "sub", "look up");
    calls.paused();
    await calls.recorded(RECORDED_MS);
    calls.unpaused();
    expect(heard).toEqual([["b", "refused"]]);
    expect(await idsCharged(execution)).toEqual(["a", "c"]);
  });
});
