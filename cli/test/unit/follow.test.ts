/** The client of the command line against servers that answer in pieces, break off, or know no events. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "@svc/cli/client";
import { afterEach, expect, it } from "vitest";

let server: Server | undefined;
afterEach(() => server?.close());

const REQUEST = { lang: "py", code: "" };
const RESULT = { stdout: "a\nb", stderr: "c", code: 3, files: [] };
const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const EVENTS = { "content-type": "text/event-stream" };

/** What was told, and the answer or the failure. */
async function follow(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  server = createServer((request, response) => {
    request.resume();
    answer(response, request);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server?.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const told = { stdout: "", stderr: "" };
  const client = new Client(`http://127.0.0.1:${port}`, { whenUnreachable: "" });
  const ended = client.follow(REQUEST, async (stream, text) => {
    told[stream] += text;
  });
  return { told, ended };
}

it("tells output as it comes, and the answer last", async () => {
  const { told, ended } = await follow((response, { headers }) => {
    expect(headers.accept).toBe("text/event-stream, application/json;q=0.9");
    response.writeHead(200, EVENTS);
    response.write(`:\n\n${event("started", {})}${event("stdout", { text: "a\n" })}`);
    response.end(event("stdout", { text: "b" }) + event("stderr", { text: "c" }) + event("result", RESULT));
  });
  expect(await ended).toEqual(RESULT);
  expect(told).toEqual({ stdout: "a\nb", stderr: "c" });
});

it("tells all at the end when the service knows no events", async () => {
  const { told, ended } = await follow((response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(RESULT));
  });
  expect(await ended).toEqual(RESULT);
  expect(told).toEqual({ stdout: "a\nb", stderr: "c" });
});

it("says with the service's words why a run failed after its start", async () => {
  const { told, ended } = await follow((response) => {
    response.writeHead(200, EVENTS).write(event("stdout", { text: "a" }));
    response.end(event("error", { error: "sandbox_execution_failed", message: "It broke." }));
  });
  await expect(ended).rejects.toThrow("It broke. (after its start sandbox_execution_failed)");
  expect(told.stdout).toBe("a");
});

it.each<[string, (response: ServerResponse) => void]>([
  ["ends early", (response) => response.end()],
  ["is cut", (response) => response.write("event: std", () => response.destroy())],
  ["is broken", (response) => response.end("event: stdout\ndata: {\n\n")],
])("an answer that %s is a failure", async (_how, end) => {
  const { ended } = await follow((response) => {
    response.writeHead(200, EVENTS).write(event("stdout", { text: "a" }));
    end(response);
  });
  await expect(ended).rejects.toThrow(/broke off/);
});
