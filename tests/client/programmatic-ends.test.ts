/** Programs with tools that do not end by themselves: limits, a user who stops, refusals, and what remains after them. */
import { randomUUID } from "node:crypto";
import { slow } from "@svc/test-kit/jail/slowness";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Conversation, type Reply } from "./support/conversation.ts";
import { hostTool } from "./support/host-tool.ts";
import { startTokenService, type TokenService } from "./support/token-service.ts";

/** A paused program that nobody answers is put away after this. */
const PAUSE_MS = 5000;
let tokens: TokenService;

beforeAll(async () => {
  tokens = await startTokenService({
    TOOL_CALL_REQUEST_TIMEOUT: String(PAUSE_MS),
    SANDBOX_RUN_MEMORY_LIMIT: "200mb",
    MAX_REQUESTS: "6",
    RATE_LIMIT_WINDOW: "60000",
  });
});

afterAll(async () => {
  expect(await tokens?.stop()).toEqual([]);
});

const square = () => hostTool("square", ({ n }) => Number(n) ** 2, { properties: { n: "number" } });

/** A conversation of a new user, each request with a token of its own. */
function talk(...tools: ReturnType<typeof hostTool>[]): Conversation {
  const user = randomUUID();
  const headers = () => ({
    Authorization: `Bearer ${tokens.token(user, { auth_context_hash: randomUUID() })}`,
  });
  return new Conversation({ url: tokens.url, headers, tools });
}

const gone = (marker: string, withinMs: number) =>
  until(
    () => processesWith(marker).length === 0,
    withinMs,
    () => processesWith(marker),
  );

test("a round that runs too long is told as such; time in which the host works does not count", async () => {
  const late = hostTool("slow", () => new Promise((resolve) => setTimeout(() => resolve("late"), 3000)));
  const chat = talk(late);
  const limits = { timeout: 2000 };
  expect((await chat.pythonWithTools("print(await slow())", limits)).text).toBe("stdout:\nlate");
  for (const reply of [
    await chat.pythonWithTools("print(await slow(), flush=True)\nwhile True: pass", limits),
    await chat.bashWithTools("slow; while :; do :; done", limits),
  ]) {
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("Code execution failed. Execution exceeded the time limit.");
    expect(reply.text).toContain("[sandbox] Time limit exceeded");
  }
});

test("the model is told that a program ran out of memory", async () => {
  const reply = await talk(square()).pythonWithTools(
    "await square(n=1)\nheld = []\nwhile True: held.append(bytearray(10_000_000))",
  );
  expect(reply.failed).toBe(true);
  expect(reply.text).toContain("Code execution failed. Execution exceeded the memory limit.");
  expect(reply.text).toContain("[sandbox] Out of memory");
});

test.each([
  ["its first round", ""],
  ["a later round", "await square(n=1)\n"],
])("a user who stops in %s ends the program", async (_when, first) => {
  const marker = newMarker();
  const stop = new AbortController();
  const reply = talk(square()).pythonWithTools(
    `${first}import subprocess\nsubprocess.run(["bash", "-c", "exec -a ${marker} sleep 60"])`,
    {},
    stop.signal,
  );
  await until(() => processesWith(marker).length > 0, slow(20_000));
  stop.abort();
  expect((await reply).failed).toBe(true);
  await gone(marker, slow(1500));
});

test("a program whose host falls silent, or whose client gives up, is put away in time", async () => {
  const marker = newMarker();
  const held = hostTool("held", () => new Promise(() => undefined));
  const child = `import subprocess\nsubprocess.Popen(["bash", "-c", "exec -a ${marker} sleep 600"])\n`;
  void talk(held).pythonWithTools(`${child}await held()`);
  const endless = await talk(square()).pythonWithTools(`${child}while True: await square(n=1)`);
  expect(endless.text).toContain("Exceeded maximum round trips (20)");
  await until(() => held.inputs.length === 1, slow(20_000));
  await gone(marker, PAUSE_MS + slow(5000));
});

test("starts are limited with the time to wait, rounds are not starts", async () => {
  const chat = talk(square());
  const rounds = "for n in range(15): await square(n=n)\nprint('done')";
  expect((await chat.pythonWithTools(rounds)).text).toBe("stdout:\ndone");
  const replies: Reply[] = [];
  for (let n = 0; n < 6; n++) replies.push(await chat.pythonWithTools("print('again')"));
  expect(replies.map(({ failed }) => failed)).toEqual([false, false, false, false, false, true]);
  expect(replies.at(-1)?.text).toMatch(/temporarily rate-limited\. Retry after \d+ seconds\./);
});

test("a caller without a token is not authorised", async () => {
  const chat = new Conversation({ url: tokens.url, tools: [square()] });
  for (const reply of [await chat.pythonWithTools("await square(n=1)"), await chat.bashWithTools("square")]) {
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("Code execution is not authorized. Verify access before trying again.");
  }
});
