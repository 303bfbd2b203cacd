/** What a soak sends: runs of many kinds, each with an answer that is known beforehand. A wrong answer is an error. */
import { isDeepStrictEqual } from "node:util";
import type { FileRef, LoadClient } from "../load-client.ts";
import { runProgram, type ToolProgram } from "../programmatic/driver.ts";
import { randomFrom, shuffled } from "../statistics.ts";

export interface Run {
  client: LoadClient;
  /** An uploaded file with the numbers from 1 to 1000, one on a line. */
  input: FileRef;
  /** Different for each run. */
  number: number;
}

export interface Kind {
  name: string;
  /** Runs of this kind among a hundred. */
  weight: number;
  /** The run itself sets its duration, not the service, so it says nothing about latency. */
  isSlow?: true;
  run: (run: Run) => Promise<void>;
}

const TIME_LIMIT_MS = 500;
const ABANDONED_AFTER_MS = 100;

const TOOL_CALL: ToolProgram = {
  language: "python",
  code: "print(await add(a=1, b=2))",
  expected: "3\n",
  calls: 1,
  rounds: 1,
};

interface Answer {
  stdout: string;
  stderr: string;
  files: FileRef[];
}

/** Executes a program; throws unless the answer has these fields. */
async function exec(client: LoadClient, request: object, expected: object): Promise<Answer> {
  const answer = (await client.json("/exec", request)) as Record<string, unknown>;
  for (const [field, value] of Object.entries(expected)) {
    if (!isDeepStrictEqual(answer[field], value)) {
      throw new Error(`${field} is not ${JSON.stringify(value)}: ${JSON.stringify(answer).slice(0, 500)}`);
    }
  }
  return answer as unknown as Answer;
}

const ended = (stdout: string) => ({ stdout, code: 0, status: null });

export const KINDS: readonly Kind[] = [
  {
    name: "hello",
    weight: 30,
    run: async ({ client, number }) => {
      await exec(client, { lang: "py", code: `print(${number} * 2)` }, ended(`${number * 2}\n`));
    },
  },
  {
    name: "pandas",
    weight: 12,
    run: async ({ client, number }) => {
      const code = `import pandas as pd\nprint(pd.Series(range(${number % 100})).sum())`;
      await exec(client, { lang: "py", code }, ended(`${((number % 100) * ((number % 100) - 1)) / 2}\n`));
    },
  },
  {
    name: "bash",
    weight: 15,
    run: async ({ client, number }) => {
      await exec(client, { lang: "bash", code: `echo $((${number} + 1))` }, ended(`${number + 1}\n`));
    },
  },
  {
    name: "javascript",
    weight: 10,
    run: async ({ client, number }) => {
      await exec(client, { lang: "js", code: `console.log(${number} - 1)` }, ended(`${number - 1}\n`));
    },
  },
  {
    name: "file-in",
    weight: 9,
    run: async ({ client, input }) => {
      const code = `print(sum(map(int, open("input.txt"))))`;
      await exec(client, { lang: "py", code, files: [input] }, ended("500500\n"));
    },
  },
  {
    name: "file-out",
    weight: 9,
    run: async ({ client, number }) => {
      const { files } = await exec(client, { lang: "bash", code: `echo ${number} > out.txt` }, ended(""));
      const [file] = files;
      if (files.length !== 1 || file?.name !== "out.txt") throw new Error("no out.txt came back");
      if ((await client.download(file)).toString() !== `${number}\n`)
        throw new Error("other bytes came back");
      await client.remove(file);
    },
  },
  {
    name: "failing",
    weight: 5,
    run: async ({ client }) => {
      const code = `raise ValueError("on purpose")`;
      const { stderr } = await exec(client, { lang: "py", code }, { stdout: "", code: 1, status: null });
      if (!stderr.endsWith("ValueError: on purpose\n"))
        throw new Error(`no traceback: ${stderr.slice(0, 500)}`);
    },
  },
  {
    name: "tool-call",
    weight: 5,
    run: ({ client }) => runProgram(client, TOOL_CALL),
  },
  {
    name: "time-limit",
    weight: 2,
    isSlow: true,
    run: async ({ client }) => {
      const code = "(setsid sleep 100 &); sleep 100";
      await exec(client, { lang: "bash", code, run_timeout: TIME_LIMIT_MS }, { status: "TO" });
    },
  },
  {
    name: "abandoned",
    weight: 3,
    isSlow: true,
    run: ({ client }) =>
      client.abandon("/exec", { lang: "py", code: "import time; time.sleep(100)" }, ABANDONED_AFTER_MS),
  },
];

const SEED = 20_260_101;

/** The kinds of this number of runs, in an order that is the same each time. Every hundred runs have all kinds by their weight. */
export function plan(runs: number): Kind[] {
  const hundred = shuffled(
    KINDS.flatMap((kind) => Array.from({ length: kind.weight }, () => kind)),
    randomFrom(SEED),
  );
  return Array.from({ length: runs }, (_, index) => hundred[index % hundred.length] as Kind);
}
