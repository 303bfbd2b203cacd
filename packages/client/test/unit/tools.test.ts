/** Programs that call functions: what the client answers to their calls, whatever a function gives. */
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Svc, type Tools } from "svc-client";
import { expect, onTestFinished, test, vi } from "vitest";

const ENDED = { status: "completed", files: [] };
const pause = (name: string, round: number) => ({
  status: "tool_call_required",
  continuation_token: `token-${round}`,
  tool_calls: [{ id: `call_${round}`, name, input: {}, arguments: {} }],
});

interface Told {
  call_id: string;
  result?: unknown;
  is_error?: boolean;
  error_message?: string;
}

/** A service whose program makes a call of each name in turn, and that refuses so many resumes first. `told`: what it was answered. */
async function calling(names: readonly string[], tools: Tools, refusals = 0, maxRetries?: number) {
  const told: Told[] = [];
  let refused = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    if (request.url?.endsWith("/cancel")) return response.end("{}");
    const { tool_results = [] } = JSON.parse(text) as { tool_results?: Told[] };
    if (tool_results.length > 0 && refused < refusals) {
      refused++;
      response.writeHead(429, { "retry-after": "0" });
      return response.end(JSON.stringify({ error: "rate_limited", message: "Later." }));
    }
    told.push(...tool_results);
    const name = names[told.length];
    response.end(JSON.stringify(name === undefined ? ENDED : pause(name, told.length)));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once("listening", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // Node's fetch keeps listeners of its own at a signal until they are collected.
  const svc = new Svc({ baseUrl, maxRetries, fetch: (url, init) => fetch(url, { ...init, signal: null }) });
  return { told, program: svc.withTools(tools) };
}

test("a result that is no JSON fails its call, and not the program", async () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const tools = { big: () => 1n, circle: () => circle, method: () => () => 1, nothing: () => undefined };
  const { told, program } = await calling(["big", "circle", "method", "nothing"], tools);
  expect(await program.run({ code: "" })).toMatchObject(ENDED);
  expect(told.map(({ is_error = false }) => is_error)).toEqual([true, true, true, false]);
  expect(told[0]?.error_message).toMatch(/^the result of big is not JSON/);
  expect(told[3]).toEqual({ call_id: "call_3", result: null });
});

test("a call of a function that there is none of fails", async () => {
  const { told, program } = await calling(["other"], { known: () => 1 });
  await program.run({ code: "" });
  expect(told).toEqual([{ call_id: "call_0", is_error: true, error_message: "there is no tool other" }]);
});

test("what a function throws is cut where it is long, and named where it says nothing", async () => {
  const tools = {
    long: () => Promise.reject(new Error("x".repeat(2 ** 20))),
    silent: () => Promise.reject(new RangeError()),
  };
  const { told, program } = await calling(["long", "silent"], tools);
  await program.run({ code: "" });
  expect(told.map(({ error_message }) => error_message)).toEqual(["x".repeat(4096), "RangeError"]);
});

test("a signal that outlives its programs keeps nothing of their rounds", async () => {
  const { signal } = new AbortController();
  const { told, program } = await calling(Array(5).fill("one"), { one: () => 1 });
  await program.run({ code: "" }, { signal });
  expect(told).toHaveLength(5);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a resume that is refused for the number of them comes again until it is taken, unless nothing is repeated", async () => {
  const tools = { one: () => 1 };
  for (const how of ["run", "stream"] as const) {
    const { told, program } = await calling(["one", "one"], tools, 5);
    if (how === "run") expect(await program.run({ code: "" })).toMatchObject(ENDED);
    else for await (const _ of program.stream({ code: "" }));
    expect(told.map(({ call_id }) => call_id)).toEqual(["call_0", "call_1"]);
  }
  const { program } = await calling(["one"], tools, 1, 0);
  await expect(program.run({ code: "" })).rejects.toMatchObject({ code: "rate_limited" });
});

test.each([31, 3_000_000])(
  "a resume comes again after the time that it is told, %i s too",
  async (seconds) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const limited = { error: "rate_limited", message: "Later." };
    const answers = [
      Response.json(pause("one", 0)),
      Response.json(limited, { status: 429, headers: { "retry-after": `${seconds}` } }),
      Response.json(ENDED),
    ];
    const told = async () => answers.shift() as Response;
    const svc = new Svc({ baseUrl: "http://svc.example", fetch: told });
    const ended = svc.withTools({ one: () => 1 }).run({ code: "" });
    // Node's timers have a longest time, which is a little shorter than the second one told.
    await vi.advanceTimersByTimeAsync(Math.min(seconds * 1000, 2 ** 31 - 1) - 1);
    expect(answers).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await ended).toMatchObject(ENDED);
  },
);
