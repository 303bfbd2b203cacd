/** What becomes of a component that did not catch an error: a process of its own, its log and its end. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { describe, expect, it } from "vitest";
import { QUOTED } from "../support/failing-component.ts";

const MAIN = join(import.meta.dirname, "../support/failing-component.ts");

async function started() {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH ?? "", SVC_INTERNAL_SERVICE_TOKEN: newSecret() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stderr = text(child.stderr);
  const lines: Record<string, unknown>[] = [];
  const url = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line));
    const found = /^Server listening at (\S+)/.exec(String(lines.at(-1)?.msg))?.[1];
    if (found !== undefined) url.resolve(found);
  });
  const stop = () => child.kill();
  return { url: await url.promise, lines, stderr, stop, ended: once(child, "close") };
}

describe("an error that nobody caught", () => {
  it.each(["timer", "rejection", "abort"])(
    "in a %s ends the component after what is in work, with one line that quotes no input",
    async (place) => {
      const { url, lines, ended } = await started();
      expect(await (await fetch(`${url}/fine`)).text()).toBe("answered");
      const inWork = await fetch(`${url}/${place}`, { headers: { connection: "close" } });
      expect(await inWork.text()).toBe("answered");
      expect((await ended)[0]).toBe(70);
      const fatal = lines.filter(({ level }) => level === 60);
      expect(fatal).toMatchObject([
        { msg: "uncaught error, stopping", err: { type: "TypeError", code: "E_EXAMPLE" } },
      ]);
      expect(JSON.stringify(fatal)).toContain("throwing");
      expect(JSON.stringify(lines)).not.toContain(QUOTED);
    },
  );
});

it("a warning of Node.js is a line of the log that says where it comes from, and no text beside it", async () => {
  const { url, lines, stderr, stop, ended } = await started();
  expect(await (await fetch(`${url}/warning`)).text()).toBe("answered");
  stop();
  expect((await ended)[0]).toBe(0);
  expect(lines.filter(({ level }) => level === 40)).toMatchObject([
    { warning: "MaxListenersExceededWarning", msg: expect.stringContaining("11 example listeners") },
  ]);
  expect(String(lines.find(({ level }) => level === 40)?.stack)).toContain("failing-component");
  expect(await stderr).toBe("");
});
