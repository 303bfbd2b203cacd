/** The tools of a program, put into the slot of a jail that then does not start it, or is gone already. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { EVENT_LINES, newId } from "@svc/contracts";
import { JailRun } from "@svc/jail-client";
import { until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { afterEach, expect, it } from "vitest";
import { CallHistory } from "../../src/programmatic/call-history.ts";
import { ToolCallClient } from "../../src/programmatic/tool-call-client.ts";
import { ToolDirectories } from "../../src/programmatic/tool-directory.ts";
import { ToolProgram, type ToolProgramOptions } from "../../src/programmatic/tool-program.ts";
import { startProgramSystem } from "../support/programs.ts";

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

it("a program that its jail refuses as it starts is refused, whether or not its caller reads along, and leaves nothing", async () => {
  // Less than the runner wants to keep of the output.
  const system = await startProgramSystem({
    jaildArgs: ["--stream-bytes", "1024"],
    env: { SANDBOX_WARM_START: "off" },
  });
  stops.push(system.stop);
  for (const accept of ["application/json", EVENT_LINES]) {
    const answer = await system.start(await system.execution(), "print(1)", { accept });
    expect([answer.status, answer.json().error]).toEqual([503, "sandbox_setup_failed"]);
    expect(system.leftInToolDirectories()).toEqual([]);
  }
});

it("a program whose jail is gone puts nothing into the slot, which may be another run's", async () => {
  const jaild = await Jaild.start({ slots: 1 });
  stops.push(() => jaild.stop());
  const client = new ToolCallClient("http://127.0.0.1:9", 100);
  stops.push(() => client.close());
  const program = new ToolProgram({
    ...{ executionId: newId(), principal: "one", round: 1, requestId: "r", callbackToken: "" },
    ...{ tools: ["add"], files: { "tools.json": "[]" }, maxCalls: 1, maxCallBytes: 1000, client },
    history: new CallHistory({ tools: ["add"], maxCalls: 1 }),
    quiescence: { settleMs: 1, settleMaxMs: 1 },
    directories: new ToolDirectories(jaild.tools, "/run/svc/tools.sock"),
    counted: undefined as unknown as ToolProgramOptions["counted"],
  });
  stops.push(async () => program.close());
  const jail = await JailRun.open(jaild.socket, new AbortController().signal);
  const left = () => readdirSync(join(jaild.tools, String(jail.slot)));
  await jaild.kill("SIGKILL");
  await jaild.restart();
  await until(() => jail.isGone, "the client has seen the end");
  await expect(program.prepare(jail)).rejects.toMatchObject({ kind: "gone", started: false });
  expect(left()).toEqual([]);
  const next = await JailRun.open(jaild.socket, new AbortController().signal);
  await program.prepare(next);
  expect(left().sort()).toEqual(["tools.json", "tools.sock"]);
  next.close();
});
