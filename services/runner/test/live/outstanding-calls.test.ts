/** Outstanding calls of a program, recorded at a real gateway. */
import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import {
  type Execution,
  startToolGateway,
  type ToolGateway,
} from "@svc/test-kit/components/gateway-tool-calls";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OutstandingCalls } from "../../src/programmatic/outstanding-calls.ts";
import { type ToolAnswer, ToolCallClient } from "../../src/programmatic/tool-call-client.ts";

const RECORDED_MS = 10_000;
let made: ToolGateway;
let store: Redis;
let client: ToolCallClient;
beforeAll(async () => {
  made = await startToolGateway();
  store = new Redis(made.redis.socket).on("error", () => {});
  client = new ToolCallClient(made.url, 100);
});
afterAll(async () => {
  await client.close();
  store.disconnect();
  await made.stop();
});

const reply = { result: () => undefined, failure: () => undefined, refuse: () => undefined };
const idsCharged = async ({ grantId }: Execution) =>
  (JSON.parse((await store.get(ledgerKey(grantId))) ?? "null") as LedgerRecord).tool_call_ids.sort();

/** Makes a call of each tool, named a, b, c and so on. */
function callsOf(execution: Execution, ...tools: string[]) {
  const answers: [id: string, kind: ToolAnswer["kind"]][] = [];
  const calls = new OutstandingCalls({
    client,
    sender: { token: execution.sealed, executionId: execution.execution, requestId: "r" },
    maxBytes: 1000,
    signal: new AbortController().signal,
    onAnswer: (id, _reply, { kind }) => answers.push([id, kind]),
    onError: (error) => {
      throw error;
    },
  });
  const ids = tools.map((name, at) => {
    const [id, text] = [String.fromCharCode(97 + at), JSON.stringify({ tool_name: name, input: {} })];
    calls.add(id, { name, input: {}, text }, text.length, reply);
    return id;
  });
  return { calls, ids, answers };
}

describe("outstanding calls", () => {
  it("are recorded and charged although their results come before they are sent", async () => {
    const execution = await made.start();
    const { calls, ids, answers } = callsOf(execution, "add", "add", "look up");
    calls.paused();
    expect(ids.map((id) => calls.remove(id))).toEqual([reply, reply, reply]);
    await calls.recorded(RECORDED_MS);
    calls.resumed();
    expect(await idsCharged(execution)).toEqual(ids);
    expect((await made.server.pending(execution)).pending_calls.map(({ call_id }) => call_id)).toEqual(ids);
    expect([answers, calls.bytes]).toEqual([[], 0]);
  });

  it("are recorded once, however often the program pauses", async () => {
    const execution = await made.start();
    const { calls, ids } = callsOf(execution, "add", "add");
    for (let pauses = 0; pauses < 3; pauses++) {
      calls.paused();
      calls.resumed();
    }
    await calls.recorded(RECORDED_MS);
    const record = JSON.parse((await store.get(ledgerKey(execution.grantId))) ?? "null") as LedgerRecord;
    expect(record).toMatchObject({ rev: 1, tool_call_ids: ids });
  });

  it("have each its own outcome when one of them is refused", async () => {
    const execution = await made.start();
    const { calls, answers } = callsOf(execution, "add", "sub", "look up");
    calls.paused();
    await calls.recorded(RECORDED_MS);
    calls.resumed();
    expect(answers).toEqual([["b", "refused"]]);
    expect(await idsCharged(execution)).toEqual(["a", "c"]);
  });
});
