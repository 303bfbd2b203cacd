/** The chains of the load: what each sends, and what the answers must say. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse, ProgrammaticResponse, ToolCallRequired } from "@svc/contracts";
import { type Answer, deletePath, downloadPath, refTo, type UploadAnswer } from "@svc/test-kit/system/api";
import { declare, resultsOf, tryResume, tryStart } from "@svc/test-kit/system/programmatic";
import type { Outcome } from "./checker.ts";
import { type Chain, demand, type Lane } from "./load.ts";
import { between, oneOf } from "./random.ts";
import { MOST_CALLS, RUN_MS } from "./system.ts";

/** Prints when it ran, by the machine's clock, and its token. */
const PLAIN: Record<string, (token: string, seconds: number) => string> = {
  py: (token, seconds) =>
    `import time\nbegan = time.monotonic()\ntime.sleep(${seconds})\nprint("${token}", began, time.monotonic())`,
  js: (token, seconds) =>
    `const now = () => Number(process.hrtime.bigint()) / 1e9; const began = now();
setTimeout(() => console.log("${token}", began, now()), ${seconds * 1000})`,
  bash: (token, seconds) =>
    `began=$(cut -d ' ' -f 1 /proc/uptime); sleep ${seconds}; echo ${token} "$began" "$(cut -d ' ' -f 1 /proc/uptime)"`,
};

/** Of a run of a session whose state is not kept: what the service adds to its standard error. */
const NOTES = /^(?:\[sandbox\] .*\n)*$/;

function judgedPlain(token: string, answer: Answer): Outcome {
  const { stdout, stderr, code, status } = answer.ok<ExecResponse>();
  const [said, began, ended] = stdout.trim().split(" ");
  demand(
    said === token && code === 0 && status === null && NOTES.test(stderr),
    "a plain program",
    answer.text,
  );
  return { as: "right", ran: { fromMs: Number(began) * 1000, toMs: Number(ended) * 1000 } };
}

export const plain: Chain = async ({ api, seen, next }) => {
  const lang = oneOf(Object.keys(PLAIN), next);
  const token = seen.token();
  const code = PLAIN[lang]?.(token, between(0, 20, next) / 10) ?? "";
  const body = { lang, code, run_timeout: RUN_MS, runtime_session_hint: token };
  await seen.request(
    `plain ${lang}`,
    token,
    () => api.tryExec(body),
    (answer) => judgedPlain(token, answer),
  );
};

/** The same key twice: one execution. */
export const twice: Chain = async ({ api, seen, next }) => {
  const token = seen.token();
  const code = `import uuid, time\ntime.sleep(${between(0, 10, next) / 10})\nprint("${token}", uuid.uuid4())`;
  const send = () =>
    api.tryExec(
      { lang: "py", code, run_timeout: RUN_MS, runtime_session_hint: token },
      { headers: { "idempotency-key": token } },
    );
  const judge = (answer: Answer): undefined => {
    const { stdout, code: exit } = answer.ok<ExecResponse>();
    demand(stdout.startsWith(`${token} `) && exit === 0, "a program with a key", answer.text);
  };
  const fromMs = seen.now();
  const both = await Promise.all([send, send].map((one) => seen.request("same key", token, one, judge)));
  const [first, second] = both.map((answer) => answer?.ok<ExecResponse>().stdout);
  if (first !== undefined && second !== undefined)
    seen.pairs.push({ token, fromMs, toMs: seen.now(), isSame: first === second });
};

/** Up, into a program, out of it, down, and away. */
export const files: Chain = async ({ api, seen, next }) => {
  const token = seen.token();
  const content = `${token} `.repeat(between(1, 3000, next));
  const stored = await seen.request(
    "upload",
    token,
    () => api.form("/upload", [{ name: "input.txt", content }]),
    () => undefined,
  );
  const [file] = stored?.ok<UploadAnswer>().files ?? [];
  if (file === undefined) return;
  const made = await seen.request(
    "input and output",
    token,
    () =>
      api.tryExec({
        lang: "bash",
        code: "tr a-z A-Z < input.txt > output.txt; wc -c < input.txt",
        files: [refTo(file)],
        run_timeout: RUN_MS,
        runtime_session_hint: token,
      }),
    (answer) => {
      const body = answer.ok<ExecResponse>();
      demand(
        body.stdout === `${content.length}\n` && body.code === 0,
        "a program with an input",
        answer.text,
      );
      const isDelivered = body.files.some(({ name }) => name === "output.txt");
      const isTold = body.files_omitted?.some((omitted) => omitted.name === "output.txt") ?? false;
      demand(isDelivered !== isTold, "an output that is there, or told as omitted", answer.text);
      return undefined;
    },
  );
  const output = made?.ok<ExecResponse>().files.find(({ name }) => name === "output.txt");
  for (const [what, one, wanted] of [
    ["a stored file", file, content],
    ["an output", output, content.toUpperCase()],
  ] as const) {
    if (one === undefined) continue;
    await seen.request(
      what,
      token,
      () => api.send("GET", downloadPath(one)),
      (answer): undefined =>
        demand(answer.bytes.equals(Buffer.from(wanted)), what, answer.text.slice(0, 100)),
    );
  }
  await seen.request(
    "delete",
    token,
    () => api.send("DELETE", deletePath(file)),
    () => undefined,
  );
};

/** The client leaves in the middle. */
export const leaving: Chain = async ({ api, seen, next }) => {
  const token = seen.token();
  const client = new AbortController();
  const body = {
    lang: "bash",
    code: `sleep 30; echo ${token}`,
    run_timeout: RUN_MS,
    runtime_session_hint: token,
  };
  const afterMs = between(0, 800, next);
  const sending = seen.request(
    "left by its client",
    token,
    () => api.tryExec(body, { signal: client.signal }),
    (answer): undefined => demand(false, "an answer in no time", answer.text),
  );
  await sleep(afterMs);
  client.abort();
  await sending;
};

const TOOL_PROGRAMS: Record<string, (token: string, calls: number) => string> = {
  python: (token, calls) => `import asyncio
print("${token}")
total = 0
for n in range(${calls}):
    total += sum(await asyncio.gather(add(a=n, b=1, of="${token}")))
print("${token}", total)`,
  bash: (token, calls) => `echo ${token}
total=0
for n in $(seq 0 ${calls - 1}); do total=$((total + $(add "{\\"a\\":$n,\\"b\\":1,\\"of\\":\\"${token}\\"}"))); done
echo ${token} $total`,
};

const AGAIN_MS = 300;
const AGAIN_WITHIN_MS = 20_000;

/**
 * A program with tools, driven to its end; one in four makes a call too many. A resume that is refused for now, or whose answer is lost, is
 * sent again as it was.
 */
export const tools: Chain = async ({ api, seen, next }) => {
  const language = oneOf(Object.keys(TOOL_PROGRAMS), next);
  const token = seen.token();
  const isTooMany = next() < 0.25;
  const calls = isTooMany ? MOST_CALLS + 1 : between(1, 4, next);
  const code = TOOL_PROGRAMS[language]?.(token, calls) ?? "";
  const pauseMs = between(0, 1500, next);
  const shown: string[] = [];
  const judge = (answer: Answer): undefined => judgeRound(answer, { token, calls, isTooMany, shown });
  const first = await seen.request(
    `tools ${language}`,
    token,
    () => tryStart(api, { code, language, tools: declare(["add"]), timeout: RUN_MS }),
    judge,
  );
  let round = first?.ok<ProgrammaticResponse>();
  while (round?.status === "tool_call_required") {
    const paused = round;
    shown.push(...paused.tool_calls.map(({ id }) => id));
    await sleep(pauseMs);
    round = await resumed({ api, seen }, paused, token, judge);
  }
  if (new Set(shown).size !== shown.length) seen.problems.push(`a call was shown twice: ${token} ${shown}`);
  if (shown.length > MOST_CALLS) seen.problems.push(`${shown.length} calls of one program: ${token}`);
};

async function resumed(
  { api, seen }: Pick<Lane, "api" | "seen">,
  { tool_calls, continuation_token }: ToolCallRequired,
  token: string,
  judge: (answer: Answer) => undefined,
): Promise<ProgrammaticResponse | undefined> {
  const results = resultsOf(tool_calls, { add: ({ a, b }: { a: number; b: number }) => a + b });
  const send = () => seen.request("resume", token, () => tryResume(api, continuation_token, results), judge);
  for (const began = performance.now(); performance.now() - began < AGAIN_WITHIN_MS; await sleep(AGAIN_MS)) {
    const answer = await send();
    if (answer !== undefined) return answer.ok<ProgrammaticResponse>();
    const last = seen.ended.findLast((one) => one.token === token)?.outcome;
    if (last?.as === "wrong" || (last?.as === "refused" && last.status < 500)) return undefined;
  }
  return undefined;
}

interface ToolProgram {
  token: string;
  calls: number;
  isTooMany: boolean;
  shown: readonly string[];
}

function judgeRound(answer: Answer, { token, calls, isTooMany, shown }: ToolProgram): undefined {
  const round = answer.ok<ProgrammaticResponse>();
  if (round.status === "tool_call_required") {
    const isRight = round.tool_calls.every(({ input, name }) => name === "add" && input.of === token);
    demand(isRight && round.partial_stdout === `${token}\n`, "a pause", answer.text);
    return undefined;
  }
  if (isTooMany) {
    demand(round.status === "error" && round.error_type === "tool_limit", "a call too many", answer.text);
    return undefined;
  }
  const total = Array.from({ length: calls }, (_, n) => n + 1).reduce((sum, each) => sum + each, 0);
  const isRight = round.status === "completed" && round.stdout === `${token}\n${token} ${total}\n`;
  demand(isRight && shown.length === calls, "a program with tools", { shown, answer: answer.text });
  return undefined;
}

/** More at once than the caller has seats, in short programs: what is too much is told to come again. */
export const burst: Chain = async (lane) => {
  const { api, seen, next } = lane;
  const many = between(4, 12, next);
  await Promise.all(
    Array.from({ length: many }, () => {
      const token = seen.token();
      const body = {
        lang: "bash",
        code: PLAIN.bash?.(token, 0.1),
        run_timeout: RUN_MS,
        runtime_session_hint: token,
      };
      return seen.request(
        "burst",
        token,
        () => api.tryExec(body),
        (answer) => judgedPlain(token, answer),
      );
    }),
  );
};
