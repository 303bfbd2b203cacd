/** The tools of svc-client for LangChain and the AI SDK, with these packages and a real run each. */

import { execFileSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const INSTALLED = fileURLToPath(new URL("./node_modules/svc-client", import.meta.url));
const part = (path: string) => import(/* @vite-ignore */ pathToFileURL(`${INSTALLED}/lib/${path}.js`).href);

let system: Service;
beforeAll(async () => {
  execFileSync("npm", ["run", "--silent", "pack:client"], { cwd: ROOT });
  cpSync(`${ROOT}/packages/client/dist`, INSTALLED, { recursive: true });
  system = await startService(OPEN_LIMITS);
});
afterAll(async () => {
  rmSync(INSTALLED, { recursive: true, force: true });
  expect(await system.stop()).toEqual([]);
});

const client = async (baseUrl = system.url) => new (await part("index")).Svc({ baseUrl });
const PROGRAM = { language: "python", code: "print(6 * 7); open('a.txt', 'w').write('x')" };

test("LangChain: a model's call is run, and answered with a text", async () => {
  const { langchainTool } = await part("adapters/langchain");
  const tool = langchainTool(await client());
  expect([tool.name, tool.description]).toEqual([
    "run_code",
    expect.stringContaining("python, javascript, bash"),
  ]);
  expect(await tool.invoke(PROGRAM)).toBe("42\n\nfiles: a.txt");
  const call = {
    type: "tool_call",
    id: "call_1",
    name: "run_code",
    args: { ...PROGRAM, code: "raise SystemExit(3)" },
  };
  expect(await tool.invoke(call)).toMatchObject({ tool_call_id: "call_1", content: "exit code 3" });
  await expect(tool.invoke({ language: "python" })).rejects.toThrow();
  const { artifact } = await tool.invoke({ ...call, args: PROGRAM });
  expect(await artifact.files[0].text()).toBe("x");
});

test("the AI SDK: a model's call is run, and its result goes back to the model", async () => {
  const { aiTool } = await part("adapters/ai");
  const { generateText, stepCountIs } = await import("ai" as string);
  const { MockLanguageModelV4, MockLanguageModelV3 } = await import("ai/test" as string);
  const prompts: unknown[] = [];
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const says = (content: object[], finishReason: string) => ({
    content,
    finishReason: { unified: finishReason, raw: finishReason },
    usage,
    warnings: [],
  });
  const model = new (MockLanguageModelV4 ?? MockLanguageModelV3)({
    doGenerate: async ({ prompt }: { prompt: unknown }) => {
      prompts.push(prompt);
      const call = {
        type: "tool-call",
        toolCallId: "1",
        toolName: "run_code",
        input: JSON.stringify(PROGRAM),
      };
      return prompts.length === 1
        ? says([call], "tool-calls")
        : says([{ type: "text", text: "It is 42." }], "stop");
    },
  });
  const { text, steps } = await generateText({
    model,
    prompt: "What is 6 * 7?",
    tools: { run_code: aiTool(await client()) },
    stopWhen: stepCountIs(2),
  });
  expect(text).toBe("It is 42.");
  expect(prompts[1]).toContainEqual({
    role: "tool",
    content: [expect.objectContaining({ output: { type: "text", value: "42\n\nfiles: a.txt" } })],
  });
  expect(await steps[0].toolResults[0].output.result.files[0].text()).toBe("x");
});

test("a run has the files that it is given, and no other language than those", async () => {
  const { aiTool } = await part("adapters/ai");
  const svc = await client();
  const note = await svc.upload(new Blob(["uploaded"]), { name: "note.txt" });
  const files = [note, { name: "unit.txt", content: "EUR" }];
  const tool = aiTool(svc, { files, languages: ["bash"] });
  expect(tool.description).toContain("Files that are there: note.txt, unit.txt.");
  const run = (input: unknown) => tool.execute(input, { toolCallId: "1", messages: [] });
  expect(await run({ language: "bash", code: "cat note.txt unit.txt" })).toMatchObject({
    text: "uploadedEUR",
  });
  for (const language of ["python", 1, undefined])
    expect(await run({ language, code: "print(1)" })).toEqual({
      text: "The program was not run: The languages are bash.",
      result: null,
    });
  for (const code of [7, undefined, {}])
    expect(await run({ language: "bash", code })).toMatchObject({
      text: expect.stringMatching(/^The program was not run: ./),
      result: null,
    });
});

test("a service that is away is a sentence for the model, and an aborted call ends", async () => {
  const { langchainTool } = await part("adapters/langchain");
  const away = langchainTool(await client("http://127.0.0.1:1"));
  expect(await away.invoke(PROGRAM)).toBe(
    "The result is not known: The service at http://127.0.0.1:1/v1 cannot be reached.",
  );
  const tool = langchainTool(await client(), { session: undefined });
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(tool.invoke(PROGRAM, { signal })).rejects.toThrow();
});
