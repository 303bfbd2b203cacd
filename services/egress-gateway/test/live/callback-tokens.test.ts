import { ledgerKey, openCallback } from "@svc/capabilities";
import { GRANT_HEADER, newId, type RegisteredGrant } from "@svc/contracts";
import { keys, registration } from "@svc/test-kit/components/gateway";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answered, begin, end, made, recordOf, refusal, store } from "../support/tool-gateway.ts";

const now = () => Math.floor(Date.now() / 1000);

describe("with a grant beside the callback token", () => {
  beforeAll(() => begin());
  afterAll(() => end());

  const granted = async (execution: string, change: Record<string, unknown> = {}) => {
    const answer = await made.internal(
      "/internal/egress-grants",
      registration([], { exec_id: execution, ...change }),
    );
    return answer.body as unknown as RegisteredGrant;
  };

  it("the grant pays; it must be good and of the same execution, and so must the token", async () => {
    const execution = await made.start();
    const grant = await granted(execution.execution, { max_tool_calls: 1 });
    const headers = { [GRANT_HEADER]: grant.egressGrantToken };
    const first = made.call(execution, "a", {}, { headers });
    await made.server.pending(execution, ["a"], 5000);
    await made.server.results(execution, [{ call_id: "a", result: 1 }]);
    expect((await first).status).toBe(200);
    expect(await refusal(made.call(execution, "b", {}, { headers }))).toBe("403 tool_call_budget");
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 0 });
    expect(await recordOf({ grantId: grant.grant_id })).toMatchObject({
      tool_call_count: 1,
      request_count: 1,
    });

    const foreign = { [GRANT_HEADER]: (await granted(newId())).egressGrantToken };
    expect(await refusal(made.call(execution, "b", {}, { headers: foreign }))).toBe("401 callback_refused");
    expect(await refusal(made.call(execution, "b", {}, { headers: { [GRANT_HEADER]: "x" } }))).toBe(
      "400 malformed",
    );
    const fresh = { [GRANT_HEADER]: (await granted(execution.execution)).egressGrantToken };
    await made.internal(`/internal/egress-grants/${execution.grantId}/revoke`, {});
    expect(await refusal(made.call(execution, "b", {}, { headers: fresh }))).toBe("403 revoked");
  });

  it("a token can be minted for a grant, whose budget it then spends", async () => {
    const session = await made.server.open();
    const grant = await granted(session.execution);
    const execution = await made.mint(session, { grantId: grant.grant_id });
    expect(execution.grantId).toBe(grant.grant_id);
    expect((await answered(execution, "a", 1)).status).toBe(200);
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 1, max_output_files: 50 });
    const mint = (change: Record<string, unknown>) =>
      refusal(
        made.internal("/internal/ptc-callback-token", {
          executionId: session.execution,
          sessionId: newId(),
          callbackToken: session.token,
          allowedToolNames: [],
          grantId: grant.grant_id,
          ...change,
        }),
      );
    expect(await mint({ executionId: newId() })).toBe("403 mismatch");
    expect(await mint({ grantId: newId() })).toBe("403 missing");
    await made.internal(`/internal/egress-grants/${grant.grant_id}/revoke`, {});
    expect(await mint({})).toBe("403 revoked");
    expect(await refusal(made.call(execution, "b"))).toBe("403 revoked");
  });
});

describe("a grant that is registered with a callback token", () => {
  beforeAll(() => begin());
  afterAll(() => end());

  it("comes with it, sealed, and always with the record of the given name", async () => {
    const { execution, token } = await made.server.open();
    const callback = { grant_id: newId(), token, tools: ["add"], life_seconds: 60 };
    const registering = (change: object = {}, exec_id = execution) =>
      made.internal("/internal/egress-grants", {
        ...registration([], { exec_id }),
        callback: { ...callback, ...change },
      });
    const [first, again] = [await registering(), await registering()];
    const tokens = [first, again].map(({ body }) => String(body.callback_token));
    expect(openCallback(keys, tokens[0] as string, now())).toMatchObject({
      grant_id: callback.grant_id,
      exec_id: execution,
      callback_token: token,
      allowed_tool_names: ["add"],
      exp: expect.closeTo(now() + 60, -1),
    });
    for (const [at, sealed] of tokens.entries()) {
      const one = { execution, token, sealed, grantId: callback.grant_id };
      expect((await answered(one, `c${at}`, at)).body.result).toBe(at);
    }
    expect(await recordOf({ grantId: callback.grant_id })).toMatchObject({
      tool_call_count: 2,
      max_upload_bytes: 0,
      max_output_files: 0,
    });
    expect(await refusal(registering({}, newId()))).toBe("403 mismatch");
    for (const wrong of [{ grant_id: "x" }, { token: "x" }, { tools: "add" }, { life_seconds: 0 }]) {
      expect((await registering(wrong)).status).toBe(400);
    }
    await made.internal(`/internal/egress-grants/${callback.grant_id}/revoke`, {});
    expect(await refusal(registering())).toBe("403 revoked");
  });
});

describe("a callback token", () => {
  beforeAll(() => begin({ SVC_EGRESS_LEDGER_REQUIRED: "false" }));
  afterAll(() => end());

  it("is minted for trusted components only, from checked fields", async () => {
    const body = {
      executionId: newId(),
      sessionId: newId(),
      callbackToken: "raw",
      allowedToolNames: ["a"],
      timeoutSeconds: 60,
    };
    const path = "/internal/ptc-callback-token";
    expect((await made.internal(path, body, "wrong")).status).toBe(401);
    const wrong = [
      { executionId: "x" },
      { callbackToken: "" },
      { allowedToolNames: "a" },
      { timeoutSeconds: 0 },
      { grantId: "x" },
    ];
    for (const change of wrong) {
      expect((await made.internal(path, { ...body, ...change })).body.error).toBe("invalid_request");
    }
    const answer = await made.internal(path, body);
    expect([answer.status, Object.keys(answer.body)]).toEqual([201, ["grant_id", "callbackToken"]]);
    const { callbackToken, grant_id } = answer.body as { callbackToken: string; grant_id: string };
    expect(callbackToken).not.toContain("raw");
    expect(openCallback(keys, callbackToken, now())).toMatchObject({
      grant_id,
      exec_id: body.executionId,
      session_id: body.sessionId,
      callback_token: "raw",
      allowed_tool_names: ["a"],
      exp: expect.closeTo(now() + 60, -1),
    });
    expect(await recordOf({ grantId: grant_id })).toMatchObject({
      max_upload_bytes: 0,
      max_output_files: 0,
      max_tool_calls: 200,
      exp: expect.closeTo(now() + 60, -1),
    });
  });

  it("without a record is good where none is required, and held to it where there is one", async () => {
    const [gone, revoked] = [await made.start(), await made.start()];
    await store.del(ledgerKey(gone.grantId));
    expect((await answered(gone, "a", 1)).body.result).toBe(1);
    expect(await store.exists(ledgerKey(gone.grantId))).toBe(0);
    expect(await refusal(made.call(gone, "b", {}, { tool: "sub" }))).toBe("403 tool_not_declared");
    await made.internal(`/internal/egress-grants/${revoked.grantId}/revoke`, {});
    expect(await refusal(made.call(revoked, "a"))).toBe("403 revoked");
  });
});
