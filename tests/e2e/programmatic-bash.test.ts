/**
 * Bash programs with tools, each the same text on a system that keeps paused programs and on one that runs them again from
 * the top at every resume: the answers are the same, rounds, output and files included.
 */
import { slow } from "@svc/test-kit/jail/slowness";
import { type Api, refTo } from "@svc/test-kit/system/api";
import type { Tools } from "@svc/test-kit/system/programmatic";
import { describe, expect, test } from "vitest";
import {
  ADD,
  JSON_VALUES,
  LOOK_UP,
  TOOL_LIMIT,
  toolProgramRuns,
  VALUES,
} from "./support/tool-program-runs.ts";
import { useSystemOfMode } from "./support/use-system.ts";

describe.each([
  ["live", 200],
  ["replay", 50],
] as const)("Bash, %s", (mode, many) => {
  let api: Api;
  useSystemOfMode(mode, (client) => {
    api = client;
  });

  const { run: bash, completed } = toolProgramRuns(() => api, { lang: "bash", args: [String(many)] });

  test("one call", async () => {
    const { stdout, pauses } = await completed(`r=$(add '{"a":1,"b":2}')\necho "$((r + 1))"`, ADD);
    expect(stdout).toBe("4\n");
    expect(pauses.map(({ tool_calls }) => tool_calls)).toEqual([
      [{ id: "call_001", name: "add", arguments: { a: 1, b: 2 }, input: { a: 1, b: 2 } }],
    ]);
  });

  test(
    `${many} calls in a row, each made from the result before it`,
    async () => {
      const code = `total=0
for ((i = 1; i <= $1; i++)); do total=$(add "{\\"a\\":$total,\\"b\\":$i}"); done
echo "$total"`;
      const { stdout, batches, pauses } = await completed(code, ADD);
      expect(stdout).toBe(`${(many * (many + 1)) / 2}\n`);
      expect(batches).toEqual(Array(many).fill(["add"]));
      expect(pauses.map(({ tool_calls }) => tool_calls[0]?.input.a)).toEqual(
        Array.from({ length: many }, (_, i) => (i * (i + 1)) / 2),
      );
    },
    slow(240_000),
  );

  test("call number 201 ends the program, with what it had written until then", async () => {
    const code = `echo before > made.txt
for i in 1 2; do
  for j in {1..100}; do add '{"a":1,"b":1}' >> sums & done
  wait
done
wc -l < sums; rm sums
add '{"a":1,"b":2}' || echo never
echo never`;
    const { answer, batches } = await bash(code, ADD);
    expect(batches.flat()).toHaveLength(200);
    expect(answer).toMatchObject({ status: "error", error_type: "tool_limit", error: TOOL_LIMIT });
    expect(answer).toMatchObject({ stdout: "200\n", stderr: `[sandbox] ${TOOL_LIMIT}\n` });
    expect(answer).toMatchObject({ tool_calls_made: 200, files: [{ name: "made.txt" }] });
  });

  test("50 background jobs are one round", async () => {
    const code = `for i in {0..49}; do add "{\\"a\\":$i,\\"b\\":$i}" > "sum$i" & done
wait
for i in {0..49}; do cat "sum$i"; rm "sum$i"; done | paste -sd,`;
    const { stdout, batches } = await completed(code, ADD);
    expect(stdout).toBe(`${Array.from({ length: 50 }, (_, i) => 2 * i).join(",")}\n`);
    expect(batches).toEqual([Array(50).fill("add")]);
  });

  test("calls in functions, subshells, pipelines, nested substitutions and traps, under strict options", async () => {
    const code = `set -euo pipefail
IFS=,
trap 'echo "bye $(add "{\\"a\\":0,\\"b\\":$?}")"' EXIT
sum() { local r; r=$(add "{\\"a\\":$1,\\"b\\":$2}"); echo "$r"; }
outer() { sum "$(sum "$1" 1)" "$(sum "$1" 2)"; }
outer 10
(cd /tmp; sum 1 1)
add '{"a":20,"b":3}' | jq '. + 1' | while read -r n; do sum "$n" 1; done
{ sum 5 5 & } ; wait
exit 7`;
    const { answer, batches } = await bash(code, ADD);
    expect(answer).toMatchObject({ status: "error", error_type: "nonzero_exit", code: 7, stderr: "" });
    expect(answer.stdout).toBe("23\n2\n25\n10\nbye 7\n");
    expect(batches.flat()).toHaveLength(8);
  });

  test("loops whose way depends on results", async () => {
    const code = `page=1 found=()
until [[ $page == null ]]; do
  answer=$(fetch "{\\"page\\":$page}")
  for item in $(jq '.items[]' <<< "$answer"); do ((item % 2)) || found+=("$item"); done
  (( \${#found[@]} > 3 )) && break
  page=$(jq .next <<< "$answer")
done
case $(check "{\\"n\\":\${found[-1]}}") in
  *true*) echo "ok \${found[*]}" ;;
  *) echo "not ok" ;;
esac`;
    const tools: Tools = {
      fetch: ({ page }) => ({ items: [page, page + 1, page * 2], ...(page < 9 ? { next: page + 1 } : {}) }),
      check: ({ n }) => ({ ok: n > 3 }),
    };
    const { stdout, batches } = await completed(code, tools);
    expect(stdout).toBe("ok 2 2 2 4\n");
    expect(batches.flat()).toEqual(["fetch", "fetch", "check"]);
  });

  test("failures are handled where they happen, or end a script that stops at failures", async () => {
    const code = `r=$(get '{"key":"missing"}' 2> message) || echo "status $? <$r> $(< message)"
if get '{"key":"other"}' 2> /dev/null; then echo never; else echo "else"; fi
get '[]' 2> /dev/null || echo "status $?"
set -e
get '{"key":"a"}'
get '{"key":"last"}'
echo never`;
    const { answer, batches } = await bash(code, LOOK_UP);
    expect(answer).toMatchObject({ status: "error", error_type: "nonzero_exit", code: 1 });
    expect(answer.stdout).toBe('status 1 <> no key "missing": $& {}\nelse\nstatus 2\n"value of a"\n');
    expect(answer.stderr).toBe('no key "last": $& {}\n');
    expect(batches).toEqual(Array(4).fill(["get"]));
  });

  test("every JSON value is one compact line", async () => {
    const code = `n=$(size)
for ((i = 0; i < n; i++)); do value "{\\"at\\":$i}" > "v$i" & done; wait
for ((i = 0; i < n; i++)); do cat "v$i"; rm "v$i"; done
nothing`;
    const { stdout } = await completed(code, VALUES);
    expect(stdout.split("\n")).toEqual([...JSON_VALUES.map((value) => JSON.stringify(value)), "null", ""]);
  });

  test("files are read and written around calls, and stored once", async () => {
    const [table, kept] = await api.upload({ "in.csv": "a,1\nb,2\n", "kept.txt": "kept" });
    if (table === undefined || kept === undefined) throw new Error("nothing was uploaded");
    const code = `set -eu
mkdir out
touch temporary
while IFS=, read -r name n; do
  [[ ! -e out/$name.txt ]]
  echo -n "$name=" >> "out/$name.txt"
  add "{\\"a\\":$n,\\"b\\":10}" >> "out/$name.txt"
done < in.csv
echo "sum,$(add '{"a":1,"b":2}')" >> in.csv
rm temporary
echo * out/*`;
    const { answer, stdout } = await completed(code, ADD, { files: [refTo(table), refTo(kept)] });
    expect(stdout).toBe("in.csv kept.txt out script.sh out/a.txt out/b.txt\n");
    const made = answer.files.filter(({ inherited }) => !inherited);
    const contents = made.map(async (file) => [file.name, (await api.bytes(file)).toString()]);
    expect(await Promise.all(contents)).toEqual([
      ["in.csv", "a,1\nb,2\nsum,3\n"],
      ["out/a.txt", "a=11\n"],
      ["out/b.txt", "b=12\n"],
    ]);
    const stored = await api.send("GET", `/files/${answer.session_id}`);
    expect(stored.ok<unknown[]>()).toHaveLength(made.length);
  });

  test("output before, between and after calls appears once and in order", async () => {
    const code = `echo one
echo error one >&2
add '{"a":1,"b":1}'
echo -n two
{ add '{"a":1,"b":2}' > x & add '{"a":1,"b":3}' > y & }; wait
sort x y; rm x y
echo -n error two >&2
add '{"a":1,"b":4}' | tr 5 6
echo four`;
    const { answer, pauses } = await bash(code, ADD);
    expect(answer).toMatchObject({ status: "completed", stderr: "error one\nerror two", tool_calls_made: 4 });
    expect(answer.stdout).toBe("one\n2\ntwo3\n4\n6\nfour\n");
    expect(pauses.map(({ partial_stdout, partial_stderr }) => [partial_stdout, partial_stderr])).toEqual([
      ["one\n", "error one\n"],
      ["one\n2\ntwo", "error one\n"],
      ["one\n2\ntwo3\n4\n", "error one\nerror two"],
    ]);
  });

  test("background calls that nobody waits for happen once", async () => {
    const seen: number[] = [];
    const code = `: & wait "$!"
note '{"a":1}' > /dev/null &
echo "main $(note '{"a":2}')"
note '{"a":3}' > /dev/null &
sleep 1
echo end`;
    const { stdout, batches } = await completed(code, { note: ({ a }) => seen.push(a) && a });
    expect(stdout).toBe("main 2\nend\n");
    expect(seen.toSorted()).toEqual([1, 2, 3]);
    expect(batches.flat()).toHaveLength(3);
  });
});
