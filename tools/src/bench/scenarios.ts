/** What is measured through the public API, as data. Each scenario checks its own result: a wrong answer is no sample. */
import { randomBytes } from "node:crypto";
import type { FileRef, LoadClient } from "./load-client.ts";

export interface Scenario {
  name: string;
  about: string;
  /** Samples as a share of --n. */
  share: number;
  /** The same where every program starts a new interpreter; absent when that makes no difference. */
  coldShare?: number;
  /** The bare command with which it is compared; see bare.ts. */
  bare?: string;
  /** It and its bare command take turns request by request. */
  alternates?: true;
  /** Done once, before anything is measured. */
  prepare?: (client: LoadClient) => Promise<FileRef[]>;
  run: (client: LoadClient, prepared: readonly FileRef[]) => Promise<void>;
}

export const HELLO = { python: "print(1)", bash: "echo 1", javascript: "console.log(1)" } as const;

export const PANDAS = `import pandas as pd
frame = pd.DataFrame({"k": list("abcd") * 250, "v": range(1000)})
print(frame.groupby("k").v.sum().sum())`;

export const PLOT = `import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
x = np.linspace(0, 6.28, 200)
waves = pd.DataFrame({"sin": np.sin(x), "cos": np.cos(x)}, index=x)
plt.plot(waves)
plt.savefig("plot.png")
print(len(waves))`;

const READ_TEN = `import os
names = [name for name in os.listdir(".") if name.endswith(".csv")]
print(len(names), sum(len(open(name).read()) for name in names))`;

const MIB = 2 ** 20;
const SMALL = randomBytes(MIB);
const LARGE = randomBytes(20 * MIB);
const CSV = Buffer.from(`a,b\n${"12,34\n".repeat(5000)}`);

const run =
  (lang: string, code: string, expected: string) =>
  async (client: LoadClient): Promise<void> => {
    await client.exec(lang, code, expected);
  };

const upload = (content: Buffer) => async (client: LoadClient) => {
  const files = await client.upload([{ name: "data.bin", content }]);
  if (files.length !== 1) throw new Error("the upload was answered without its file");
};

const download = (content: Buffer) => async (client: LoadClient, prepared: readonly FileRef[]) => {
  const [file] = prepared;
  if (file === undefined || !content.equals(await client.download(file)))
    throw new Error("other bytes came back");
};

const stored = (content: Buffer) => (client: LoadClient) => client.upload([{ name: "data.bin", content }]);

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "hello-python",
    about: "print(1)",
    share: 1,
    coldShare: 1,
    bare: "python",
    run: run("py", HELLO.python, "1\n"),
  },
  {
    name: "hello-bash",
    about: "echo 1",
    share: 1,
    coldShare: 1,
    bare: "bash",
    run: run("bash", HELLO.bash, "1\n"),
  },
  {
    name: "hello-javascript",
    about: "console.log(1)",
    share: 1,
    coldShare: 1,
    bare: "node",
    // A pre-started interpreter takes as long as a cold start: requests that come faster find none (see the loads).
    alternates: true,
    run: run("js", HELLO.javascript, "1\n"),
  },
  {
    name: "pandas",
    about: "import pandas, a groupby over 1000 rows",
    share: 1,
    coldShare: 0.15,
    bare: "pandas",
    run: run("py", PANDAS, "499500"),
  },
  {
    name: "plot",
    about: "numpy, pandas, pyplot, one PNG that is returned as a file",
    share: 1,
    coldShare: 0.15,
    bare: "plot",
    run: async (client) => {
      const { files } = await client.exec("py", PLOT, "200");
      if (files[0]?.name !== "plot.png") throw new Error("no plot.png came back");
    },
  },
  {
    name: "files-in",
    about: "ten inputs of 30 kB each, read in Python",
    share: 0.5,
    coldShare: 0.25,
    prepare: (client) =>
      client.upload(Array.from({ length: 10 }, (_, index) => ({ name: `${index}.csv`, content: CSV }))),
    run: async (client, prepared) => {
      await client.exec("py", READ_TEN, `10 ${CSV.length * 10}`, prepared);
    },
  },
  {
    name: "file-out",
    about: "one output file of 1 kB from Python",
    share: 0.5,
    coldShare: 0.25,
    run: async (client) => {
      const { files } = await client.exec("py", 'open("out.txt", "w").write("x" * 1000)\nprint(1)', "1\n");
      if (files.length !== 1) throw new Error("no output file came back");
    },
  },
  { name: "upload-1mb", about: "POST /v1/upload, one file of 1 MiB", share: 0.5, run: upload(SMALL) },
  { name: "upload-20mb", about: "POST /v1/upload, one file of 20 MiB", share: 0.1, run: upload(LARGE) },
  {
    name: "download-1mb",
    about: "GET /v1/download of 1 MiB",
    share: 0.5,
    prepare: stored(SMALL),
    run: download(SMALL),
  },
  {
    name: "download-20mb",
    about: "GET /v1/download of 20 MiB",
    share: 0.1,
    prepare: stored(LARGE),
    run: download(LARGE),
  },
];

/** Measurements other than one request at a time; they follow after it. */
export const BLOCKS = {
  concurrency: {
    about: "hello-python with 1, 2, 4, 8 and 32 requests in flight, hello-javascript with 1, pandas with 8",
    cold: true,
  },
  burst: { about: "100 requests at once", cold: true },
  files: { about: "20 MiB up and down, against a bare server", cold: false },
  paused: { about: "many programs that wait for their caller", cold: false },
  sessions: { about: "runs of sessions, against the same runs without", cold: false },
  memory: { about: "idle, and for each further pandas program at the same time", cold: true },
} as const;
export type Block = keyof typeof BLOCKS;
