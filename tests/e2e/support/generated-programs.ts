/**
 * Generated deterministic programs with tools: sequences of calls, calls made together, failures, branches and loops on
 * results, prints, files. Each can be written in Python and in Bash, and `expected` says what must come out. Pure.
 */

import type { Tools } from "@svc/test-kit/system/programmatic";
import fc from "fast-check";

const MODULUS = 1009;
const MOST_CALLS = 16;
const FILES = ["a.txt", "b.txt"] as const;

type Node =
  | { kind: "print"; word: string }
  | { kind: "call"; by: number; plain: boolean }
  | { kind: "together"; by: number[]; threads: boolean }
  | { kind: "attempt"; by: number }
  | { kind: "branch"; modulus: number; yes: Node[]; no: Node[] }
  | { kind: "loop"; times: number; body: Node[] }
  | { kind: "append" | "show" | "remove"; file: string };

export interface Program {
  body: Node[];
  code: number;
}

export interface Expected {
  stdout: string;
  files: [name: string, content: string][];
  /** Arguments of the calls of each pause, sorted. */
  batches: number[][];
}

export const TOOLS: Tools = {
  step: ({ n }) => step(n),
  attempt: ({ n }) => attempt(n),
};
const step = (n: number) => (n * 31 + 7) % MODULUS;
function attempt(n: number): number {
  if (n % 2 === 1) throw new Error(`${n} is odd`);
  return step(n);
}

const by = fc.nat({ max: 40 });
const file = fc.constantFrom(...FILES);
const leaf: fc.Arbitrary<Node> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("call"), by, plain: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("together"),
      by: fc.array(by, { minLength: 1, maxLength: 5 }),
      threads: fc.boolean(),
    }),
  },
  fc.record({ kind: fc.constant("attempt"), by }),
  fc.record({ kind: fc.constant("print"), word: fc.constantFrom("x", "value", "%s $& {} é", "") }),
  fc.record({ kind: fc.constantFrom("append", "show", "remove"), file }),
);
const block = (node: fc.Arbitrary<Node>, maxLength: number) => fc.array(node, { minLength: 1, maxLength });
const inner = fc.oneof(
  { weight: 3, arbitrary: leaf },
  fc.record({
    kind: fc.constant("branch"),
    modulus: fc.integer({ min: 2, max: 3 }),
    yes: block(leaf, 3),
    no: block(leaf, 3),
  }),
);
const node: fc.Arbitrary<Node> = fc.oneof(
  { weight: 3, arbitrary: inner },
  fc.record({ kind: fc.constant("loop"), times: fc.integer({ min: 1, max: 3 }), body: block(inner, 3) }),
);

export const program: fc.Arbitrary<Program> = fc
  .record({ body: block(node, 6), code: fc.constantFrom(0, 0, 0, 3) })
  .filter((generated) => {
    const calls = expected(generated).batches.flat().length;
    return calls > 0 && calls <= MOST_CALLS;
  });

/** One program that holds every kind of statement. */
export const EVERY_KIND: Program = {
  body: [
    { kind: "print", word: "begin" },
    { kind: "show", file: "a.txt" },
    {
      kind: "loop",
      times: 2,
      body: [
        { kind: "call", by: 1, plain: true },
        { kind: "branch", modulus: 2, yes: [{ kind: "attempt", by: 0 }], no: [{ kind: "attempt", by: 0 }] },
        { kind: "append", file: "a.txt" },
        { kind: "append", file: "b.txt" },
      ],
    },
    { kind: "together", by: [0, 1, 1], threads: true },
    { kind: "together", by: [0, 1, 1], threads: false },
    { kind: "call", by: 0, plain: false },
    { kind: "show", file: "a.txt" },
    { kind: "remove", file: "b.txt" },
  ],
  code: 3,
};

/** What the program does, told without running it. */
export function expected({ body }: Program): Expected {
  let x = 1;
  let stdout = "";
  const files = new Map<string, string>();
  const batches: number[][] = [];
  const run = (nodes: readonly Node[]): void => {
    for (const at of nodes) {
      switch (at.kind) {
        case "print":
          stdout += `${at.word} ${x}\n`;
          break;
        case "call":
          batches.push([x + at.by]);
          x = step(x + at.by);
          break;
        case "together": {
          const inputs = at.by.map((offset) => x + offset);
          batches.push(inputs.toSorted((a, b) => a - b));
          x = inputs.reduce((sum, input) => sum + step(input), 0) % MODULUS;
          break;
        }
        case "attempt": {
          const input = x + at.by;
          batches.push([input]);
          if (input % 2 === 1) stdout += `caught ${input} is odd\n`;
          else x = step(input);
          break;
        }
        case "branch":
          run(x % at.modulus === 0 ? at.yes : at.no);
          break;
        case "loop":
          for (let i = 0; i < at.times; i++) run(at.body);
          break;
        case "append":
          files.set(at.file, `${files.get(at.file) ?? ""}${x};`);
          break;
        case "show":
          stdout += `${files.get(at.file) ?? "none"}\n`;
          break;
        case "remove":
          files.delete(at.file);
      }
    }
  };
  run(body);
  return { stdout, files: [...files].sort(), batches };
}

export function inPython({ body, code }: Program): string {
  const pool = "from concurrent.futures import ThreadPoolExecutor";
  return [pool, "x = 1", ...python(body), `sys.exit(${code})`].join("\n");
}

const python = (nodes: readonly Node[]): string[] => nodes.flatMap(pythonOf);
const indented = (nodes: readonly Node[]) => python(nodes).map((line) => `    ${line}`);

function pythonOf(at: Node): string[] {
  switch (at.kind) {
    case "print":
      return [`print(${JSON.stringify(at.word)}, x)`];
    case "call":
      return at.plain ? [`x = step(n=x + ${at.by}) + 0`] : [`x = await step(n=x + ${at.by})`];
    case "together": {
      const calls = at.threads
        ? `ThreadPoolExecutor(8).map(lambda by: step(n=x + by), ${JSON.stringify(at.by)})`
        : `await asyncio.gather(*[step(n=x + by) for by in ${JSON.stringify(at.by)}])`;
      return [`x = sum(${calls}) % ${MODULUS}`];
    }
    case "attempt":
      return [
        "try:",
        `    x = await attempt(n=x + ${at.by})`,
        "except ToolExecutionError as e:",
        '    print("caught", e)',
      ];
    case "branch":
      return [`if x % ${at.modulus} == 0:`, ...indented(at.yes), "else:", ...indented(at.no)];
    case "loop":
      return [`for _ in range(${at.times}):`, ...indented(at.body)];
    case "append":
      return [`with open("${at.file}", "a") as f: f.write(f"{x};")`];
    case "show":
      return [`print(open("${at.file}").read() if os.path.exists("${at.file}") else "none")`];
    case "remove":
      return [`if os.path.exists("${at.file}"): os.remove("${at.file}")`];
  }
}

export function inBash({ body, code }: Program): string {
  return ["set -euo pipefail", "x=1", ...bash(body), `exit ${code}`].join("\n");
}

const bash = (nodes: readonly Node[]): string[] => nodes.flatMap(bashOf);
const input = (offset: number) => `"{\\"n\\":$((x + ${offset}))}"`;

function bashOf(at: Node): string[] {
  switch (at.kind) {
    case "print":
      return [`echo '${at.word}' "$x"`];
    case "call":
      return at.plain
        ? [`step ${input(at.by)} > /tmp/result`, "x=$(< /tmp/result)"]
        : [`x=$(step ${input(at.by)})`];
    case "together":
      return [
        ...at.by.map((offset, index) => `step ${input(offset)} > /tmp/${index} &`),
        "wait",
        `x=$(((${at.by.map((_, index) => `$(< /tmp/${index})`).join(" + ")}) % ${MODULUS}))`,
      ];
    case "attempt":
      return [
        `if r=$(attempt ${input(at.by)} 2> /tmp/message); then x=$r`,
        'else echo "caught $(< /tmp/message)"; fi',
      ];
    case "branch":
      return [`if ((x % ${at.modulus} == 0)); then`, ...bash(at.yes), "else", ...bash(at.no), "fi"];
    case "loop":
      return [`for ((i = 0; i < ${at.times}; i++)); do`, ...bash(at.body), "done"];
    case "append":
      return [`echo -n "$x;" >> ${at.file}`];
    case "show":
      return [`if [[ -e ${at.file} ]]; then cat ${at.file}; echo; else echo none; fi`];
    case "remove":
      return [`rm -f ${at.file}`];
  }
}
