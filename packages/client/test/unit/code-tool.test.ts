/** What a model is told when the service gives no result of its program. */
import { Svc } from "svc-client";
import { expect, test } from "vitest";
import { codeTool } from "../../src/adapters/code-tool.ts";

const PROGRAM = { language: "bash", code: "" };
const NOT_RUN = "The program was not run: Told.";
const NOT_KNOWN = "The result is not known: Told.";

const toldOf = (answer: () => Promise<Response>) =>
  codeTool(new Svc({ baseUrl: "http://svc.example", fetch: answer, maxRetries: 0 })).run(PROGRAM);

test.each([
  ["invalid_request", 422, NOT_RUN],
  ["unauthorized", 401, NOT_RUN],
  ["rate_limited", 429, NOT_RUN],
  ["queue_saturated", 503, NOT_RUN],
  ["sandbox_setup_failed", 503, NOT_RUN],
  ["execution_cancelled", 409, NOT_KNOWN],
  ["sandbox_execution_failed", 502, NOT_KNOWN],
  ["execution_timeout", 504, NOT_KNOWN],
  ["internal_error", 500, NOT_KNOWN],
  ["of_a_later_version", 503, NOT_KNOWN],
])("an error %s with status %i", async (error, status, text) => {
  const answer = async () => Response.json({ error, message: "Told." }, { status });
  expect(await toldOf(answer)).toEqual({ text, result: null });
});

test("a connection that fails, and an answer of something else, say nothing of the program", async () => {
  const answers = [
    () => Promise.reject(new TypeError("fetch failed")),
    async () => new Response("<html>", { status: 404 }),
    async () => new Response('{"stdout": "4'),
  ];
  for (const answer of answers)
    expect(await toldOf(answer)).toEqual({
      text: expect.stringMatching(/^The result is not known: The /),
      result: null,
    });
});
