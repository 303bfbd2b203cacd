/** Values that are nested as deeply as a request may be reach a program whole, and come back from it. */

import type { Api } from "@svc/test-kit/system/api";
import { drive } from "@svc/test-kit/system/programmatic";
import { describe, expect, test } from "vitest";
import { useSystemOfMode } from "./support/use-system.ts";

/** Of 64; the body, its list and the item that holds the value are three. */
const LEVELS = 61;
/** Of a call's arguments: fewer, because answers wrap them as well. */
const CALL_LEVELS = 40;

const deep = (levels: number): unknown =>
  levels === 0 ? "end" : levels % 2 === 0 ? [deep(levels - 1)] : { a: deep(levels - 1) };
const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + depthOf(Object.values(value)[0]) : 0;
const DEPTH = `
def depth(value):
    levels = 0
    while value != "end":
        value = value[0] if isinstance(value, list) else value["a"]
        levels += 1
    return levels
`;

describe.each(["live", "replay"] as const)("with programs kept %s", (mode) => {
  let api: Api;
  useSystemOfMode(mode, (client) => {
    api = client;
  });

  test("a schema, arguments and a result of many levels pass", async () => {
    const code = `${DEPTH}
value = "end"
for at in range(${CALL_LEVELS}):
    value = [value] if at % 2 else {"a": value}
print(depth(await get(value=value)))`;
    const schema = { type: "object", properties: { value: { description: deep(LEVELS - 3) } } };
    const declared = [{ name: "get", parameters: schema }];
    const { answer, pauses } = await drive(api, { code }, { get: () => deep(LEVELS) }, { declared });
    expect(answer).toMatchObject({ status: "completed", stdout: `${LEVELS}\n` });
    expect(depthOf(pauses[0]?.tool_calls[0]?.input)).toBe(CALL_LEVELS + 1);
  });

  test("an unknown field of many levels changes nothing", async () => {
    const answer = await api.tryExec({ lang: "bash", code: "echo fine", other: deep(LEVELS + 2) });
    expect([answer.status, answer.json<{ stdout: string }>().stdout]).toEqual([200, "fine\n"]);
  });
});
