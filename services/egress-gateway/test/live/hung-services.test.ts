/** What the gateway answers while a component behind it takes connections and says nothing. */
import { newId } from "@svc/contracts";
import { asRunner, type Gateway, startGateway } from "@svc/test-kit/components/gateway";
import { startToolGateway, type ToolGateway } from "@svc/test-kit/components/gateway-tool-calls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const SOON = { EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: "300" };

describe("a file server that hangs", () => {
  let made: Gateway;
  beforeAll(async () => {
    made = await startGateway(SOON);
  });
  afterAll(() => made.stop());

  it("is upstream_timeout for reads, lists and writes, and served again when it goes on", async () => {
    const runner = asRunner(await made.register([await made.upload("a", "1")]));
    process.kill(made.files.pid, "SIGSTOP");
    const id = newId();
    const answers = await Promise.all(
      [runner.read(), runner.list(), runner.write("x", { id })].map((call) => made.call(call)),
    ).finally(() => process.kill(made.files.pid, "SIGCONT"));
    for (const answer of answers) {
      expect([answer.status, answer.json().error]).toEqual([504, "upstream_timeout"]);
    }
    expect((await made.call(runner.read())).status).toBe(200);
    expect((await made.call(runner.write("x", { id }))).status).toBe(200);
  });
});

describe("a tool call server that hangs", () => {
  let made: ToolGateway;
  beforeAll(async () => {
    made = await startToolGateway({ ...SOON, TOOL_CALL_REQUEST_TIMEOUT: "700" });
  });
  afterAll(() => made.stop());

  it("is upstream_timeout for calls that are recorded, and for one that waited as long as it may", async () => {
    const execution = await made.start();
    process.kill(made.server.pid, "SIGSTOP");
    const call = { tool_name: "add", input: {} };
    const answers = await Promise.all([
      made.record(execution, [{ call_id: "call_001", call }]),
      made.call(execution, "call_002"),
    ]).finally(() => process.kill(made.server.pid, "SIGCONT"));
    for (const { status, body } of answers) expect([status, body.error]).toEqual([504, "upstream_timeout"]);
  });
});
