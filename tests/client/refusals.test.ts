/** Callers with access tokens, and what the model reads when the service says no. */
import { randomUUID } from "node:crypto";
import { Api } from "@svc/test-kit/system/api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation } from "./support/conversation.ts";
import { startTokenService, type TokenService } from "./support/token-service.ts";

let tokens: TokenService;

beforeAll(async () => {
  tokens = await startTokenService({ MAX_REQUESTS: "8", RATE_LIMIT_WINDOW: "60000" });
});

afterAll(async () => {
  expect(await tokens?.stop()).toEqual([]);
});

/** A user whom no other test knows, so that the tests do not meet each other's limits. */
const newUser = () => randomUUID();
const talk = (user: string, claims: Readonly<Record<string, unknown>> = {}) =>
  new Conversation({ url: tokens.url, headers: () => bearer(tokens.token(user, claims)) });
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

const NOT_AUTHORIZED = "Code execution is not authorized. Verify access before trying again.";

describe("access tokens", () => {
  test("a user works with files over calls that each carry a new token, also after a change of role", async () => {
    const user = newUser();
    const chat = talk(user);
    await chat.bash("echo mine > mine.txt");
    expect((await chat.bash("cat mine.txt")).text).toBe("stdout:\nmine");
    const promoted = talk(user, { role: "ADMIN", org_id: "other", auth_context_hash: "changed" });
    promoted.attach(chat.files);
    expect((await promoted.bash("cat mine.txt")).text).toBe("stdout:\nmine");
  });

  test.each([
    ["another user", newUser(), {}],
    ["the same user id of another tenant", "shared", { tenant_id: "t2" }],
  ])("%s is not authorised to use a file", async (_who, user, claims) => {
    const owner = talk("shared");
    await owner.bash("echo mine > mine.txt");
    const thief = talk(user, claims);
    thief.attach(owner.files);
    const reply = await thief.bash("cat mine.txt");
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain(NOT_AUTHORIZED);
  });

  test.each([
    ["no token", undefined],
    ["a broken token", () => "x.y.z"],
    ["an expired token", () => tokens.token("u", { iat: past(900), nbf: past(900), exp: past(600) })],
    ["a token for another service", () => tokens.token("u", { aud: "elsewhere" })],
  ])("with %s the model reads that it is not authorised", async (_what, token) => {
    const chat = new Conversation({ url: tokens.url, ...(token === undefined ? {} : { token }) });
    for (const reply of [await chat.python("print(1)"), await chat.bash("echo 1")]) {
      expect(reply.failed).toBe(true);
      expect(reply.text).toContain(NOT_AUTHORIZED);
    }
  });

  const past = (seconds: number) => Math.floor(Date.now() / 1000) - seconds;
});

test("a user beyond the limit is told when to come again; others are served", async () => {
  const chat = talk(newUser());
  let reply = await chat.bash("true");
  while (!reply.failed && chat.requests < 10) reply = await chat.bash("true");
  expect(chat.requests).toBe(9);
  const seconds = Number(/Retry after (\d+) seconds\./.exec(reply.text)?.[1]);
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect((await talk(newUser()).bash("echo served")).text).toBe("stdout:\nserved");
});

test("while the queue's store is gone the model is told to try again, and later it works", async () => {
  const chat = talk(newUser());
  process.kill(tokens.pid("redis"), "SIGSTOP");
  try {
    const reply = await chat.bash("echo 1");
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("Code execution is temporarily unavailable. Please retry.");
  } finally {
    process.kill(tokens.pid("redis"), "SIGCONT");
  }
  const ready = await new Api(tokens.url).send("GET", "/health");
  expect(ready.status).toBe(200);
  expect((await chat.bash("echo again")).text).toBe("stdout:\nagain");
});
