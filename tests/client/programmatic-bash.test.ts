/** Bash programs of the model that call the host's tools through LibreChat's client. */

import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Conversation } from "./support/conversation.ts";
import { type HostTool, hostTool } from "./support/host-tool.ts";

let system: Service;

beforeAll(async () => {
  system = await startService(OPEN_LIMITS);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const talk = (...tools: HostTool[]) => new Conversation({ url: system.url, tools });

const people = () =>
  hostTool("query-people", () => [
    { name: "Ada Lovelace", born: 1815 },
    { name: 'O\'Neil "$HOME"', born: 1950 },
  ]);
const echo = () => hostTool("say", ({ text }) => text, { properties: { text: "string" } });
const failing = () =>
  hostTool("failing", () => {
    throw new Error("the upstream said 'no'");
  });

test("a result goes through jq, and one call's answer into the next call's argument", async () => {
  const said = echo();
  const chat = talk(people(), said);
  const reply = await chat.bashWithTools(`set -euo pipefail
echo before
data=$(query_people '{}')
echo "$data" | jq -r '.[] | .name'
say "$(jq -n --arg text "$(jq -r '.[1].name' <<<"$data")" '{text: $text}')"
echo after`);
  expect(reply.text).toBe(`stdout:
before
Ada Lovelace
O'Neil "$HOME"
"O'Neil \\"$HOME\\""
after`);
  expect(said.inputs).toEqual([{ text: `O'Neil "$HOME"` }]);
  expect(chat.requests).toBe(3);
});

test("background calls that are waited for are one round, as in the client's own example", async () => {
  const said = echo();
  const chat = talk(said);
  const reply = await chat.bashWithTools(`
for n in {1..12}; do
  { r=$(say "{\\"text\\": \\"n$n\\"}"); printf '%s\\n' "$r" > /mnt/data/$n.json; } &
done
wait
for n in {1..12}; do jq -r . /mnt/data/$n.json; done | paste -sd,`);
  expect(reply.text).toContain(`stdout:\n${Array.from({ length: 12 }, (_, n) => `n${n + 1}`).join(",")}\n`);
  expect(reply.text).toContain("Session files: 12 persisted file(s)");
  expect([chat.requests, said.peak()]).toEqual([2, 12]);
});

test("a loop of calls on a condition", async () => {
  const chat = talk(hostTool("next", ({ n }) => ({ n: Number(n) + 1 }), { properties: { n: "number" } }));
  const reply = await chat.bashWithTools(`n=0
while [ "$n" -lt 5 ]; do n=$(next "{\\"n\\": $n}" | jq .n); echo "now $n"; done`);
  expect(reply.text).toBe("stdout:\nnow 1\nnow 2\nnow 3\nnow 4\nnow 5");
});

test("a failing tool can be handled, and otherwise ends a strict script with its words on stderr", async () => {
  const chat = talk(failing());
  const handled = await chat.bashWithTools(`set -e
if r=$(failing '{}'); then echo "got $r"; else echo "status $?"; fi
failing || echo fallback`);
  expect(handled.failed).toBe(false);
  expect(handled.text).toMatch(/^stdout:\nstatus 1\nfallback\n\nstderr:\n/);
  expect(handled.text.match(/the upstream said 'no'/g)).toHaveLength(2);

  const ended = await chat.bashWithTools("set -e\necho before\nfailing '{}'\necho never");
  expect(ended.failed).toBe(true);
  expect(ended.text).toContain(
    "Bash programmatic execution failed: Code execution failed. Execution exited with code 1\n",
  );
  expect(ended.text).toContain("the upstream said 'no'");
  expect(ended.text).not.toContain("never");
});

test("an argument that is no JSON object is told to the script and asked of nobody", async () => {
  const said = echo();
  const reply = await talk(said).bashWithTools("say hello; echo \"status $?\"; say '[1]' || echo again");
  expect(reply.text).toMatch(/^stdout:\nstatus 2\nagain\n\nstderr:\n/);
  expect(said.inputs).toEqual([]);
});

test("every JSON value is one compact line, and a string that holds JSON comes decoded, as the client sends it", async () => {
  const values = ["null", "true", "1.5", '"text"', '"{\\"a\\": [1, 2]}"', '{"a": {"b": "two words"}}'];
  const tool = hostTool("value", ({ json }) => JSON.parse(String(json)), { properties: { json: "string" } });
  const reply = await talk(tool).bashWithTools(
    values.map((json) => `value '${JSON.stringify({ json })}'`).join("\n"),
  );
  expect(reply.text.split("\n").slice(1)).toEqual([
    "null",
    "true",
    "1.5",
    '"text"',
    '{"a":[1,2]}',
    '{"a":{"b":"two words"}}',
  ]);
});

test("names that Bash does not have are reached as the client describes them; builtins stay what they are", async () => {
  const tools = ["web.search", "do", "2fast", "echo", "test"].map((name) => hostTool(name, () => name));
  const reply = await talk(...tools).bashWithTools(
    "web_search\ndo_tool '{}'\n_2fast\necho_tool\necho '{}'\necho plain\ntest -d /mnt/data && test_tool",
  );
  expect(reply.text).toBe('stdout:\n"web.search"\n"do"\n"2fast"\n"echo"\n"echo"\nplain\n"test"');
});

test("a program without tools and one with an own exit code", async () => {
  const chat = talk(echo());
  expect((await chat.bashWithTools("echo no tools", { tool_manifest: [] })).text).toBe("stdout:\nno tools");
  const reply = await chat.bashWithTools("echo out; echo err >&2; exit 7");
  expect(reply.failed).toBe(true);
  expect(reply.text).toContain("Execution exited with code 7\n");
  expect(reply.text).toContain("Stderr:\nerr");
});
