/**
 * Executions of all kinds, good and hostile, from a seed: the same seed gives the same programs in the same order. Each
 * checks its own answer and throws when it is not the right one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse, FileRef } from "@svc/contracts";
import { type Api, type ExecInput, output } from "@svc/test-kit/system/api";
import { expect } from "vitest";

export interface Kind {
  name: string;
  /** How often it comes, beside the others. */
  weight: number;
  run: (api: Api, random: Random) => Promise<void>;
}

/** A number from 0 to below `bound`. */
export type Random = (bound: number) => number;

/** Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return Math.floor((((word ^ (word >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

/** One of the kinds; each comes as often as it weighs. */
export function pick(kinds: readonly Kind[], random: Random): Kind {
  let at = random(kinds.reduce((sum, { weight }) => sum + weight, 0));
  for (const kind of kinds) {
    at -= kind.weight;
    if (at < 0) return kind;
  }
  throw new Error("no kind has a weight");
}

/** Of programs that are not meant to meet it, however busy the machine is. */
const LONG_MS = 60_000;

/** A program whose answer holds these fields. */
const ends = (
  name: string,
  weight: number,
  program: (random: Random) => ExecInput,
  expected: Partial<ExecResponse>,
): Kind => ({
  name,
  weight,
  run: async (api, random) => {
    expect(await api.exec({ run_timeout: LONG_MS, ...program(random) }), name).toMatchObject(expected);
  },
});

const TIMEOUT = { status: "TO", code: 137 } as const;
const soon = (random: Random) => ({ run_timeout: 50 + random(150) });

export function mixture(input: FileRef): Kind[] {
  return [
    {
      name: "a sum in Python",
      weight: 20,
      run: async (api, random) => {
        const n = random(1e6);
        expect(await api.exec({ lang: "py", code: `print(${n} * 2)` })).toMatchObject({
          stdout: `${2 * n}\n`,
          code: 0,
        });
      },
    },
    {
      name: "input and output in Bash",
      weight: 20,
      run: async (api, random) => {
        const text = String(random(1e9));
        const code = "cat input.txt - > made.txt; rm -r /tmp/* 2> /dev/null; mkdir -p a/b; ln -s / link";
        const answer = await api.exec({ lang: "bash", code, stdin: text, files: [input] });
        expect((await api.bytes(output(answer, "made.txt"))).toString()).toBe(`input${text}`);
      },
    },
    ends("JavaScript", 4, () => ({ lang: "js", code: "console.log([1,2,3].map(x=>x*x).join())" }), {
      stdout: "1,4,9\n",
    }),
    ends("TypeScript", 1, () => ({ lang: "ts", code: "const n: number = 7; console.log(n)" }), {
      stdout: "7\n",
    }),
    ends("an error", 4, () => ({ lang: "py", code: "raise SystemExit(3)" }), { code: 3, status: null }),
    ends("a crash", 4, () => ({ lang: "bash", code: "kill -SEGV $$" }), { status: "SG", signal: "SIGSEGV" }),
    ends("a loop", 4, (random) => ({ lang: "bash", code: "while :; do :; done", ...soon(random) }), TIMEOUT),
    ends(
      "a sleeper with daemons",
      4,
      (random) => ({ lang: "bash", code: "(setsid sleep 90 &); sleep 90 & sleep 90", ...soon(random) }),
      TIMEOUT,
    ),
    ends(
      "daemons left behind",
      4,
      () => ({ lang: "bash", code: "for n in 1 2 3; do (setsid sleep 90 &); done; echo left" }),
      { stdout: "left\n", status: null },
    ),
    ends(
      "a fork bomb",
      2,
      (random) => ({
        lang: "py",
        code: "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        ...soon(random),
      }),
      TIMEOUT,
    ),
    ends(
      "all processes stopped",
      2,
      (random) => ({ lang: "bash", code: "sleep 90 & kill -STOP -1; kill -STOP $$", ...soon(random) }),
      TIMEOUT,
    ),
    ends(
      "a flood",
      3,
      (random) => ({ lang: "bash", code: random(2) === 0 ? "yes" : "yes | tee /dev/null" }),
      { status: "OL", code: 137 },
    ),
    ends("a flood of errors", 2, () => ({ lang: "bash", code: "yes >&2" }), { status: "EL", code: 137 }),
    ends(
      "a memory bomb",
      1,
      () => ({ lang: "py", code: "kept = []\nwhile True: kept.append(b'x' * (32 << 20))" }),
      { status: "ML", code: 137 },
    ),
    ends(
      "memory files",
      1,
      () => ({
        lang: "py",
        code: "import os, time\nfor n in range(50): os.write(os.memfd_create('x'), bytes(16 << 20))\ntime.sleep(60)",
      }),
      { status: "ML" },
    ),
    ends(
      "a full file system",
      1,
      () => ({ lang: "bash", code: "head -c 200M /dev/zero > /tmp/f; echo $?" }),
      { stdout: "1\n" },
    ),
    ends(
      "many files",
      1,
      () => ({
        lang: "bash",
        code: "mkdir d; touch d/{1..3000}; rm -r d; mkdir -p $(printf 'x/%.0s' {1..400}); echo made",
      }),
      { stdout: "made\n" },
    ),
    ends("outputs beyond the count", 1, () => ({ lang: "bash", code: "touch f{1..60}" }), {
      files_omitted_count: 10,
    }),
    ends(
      "kernel objects",
      2,
      () => ({
        lang: "py",
        code: "import os, select, socket\nkept = []\ntry:\n    while True: kept += [select.epoll(), socket.socketpair(), os.memfd_create('x'), os.eventfd(0)]\nexcept OSError as e: print(e.errno)",
      }),
      { stdout: "24\n" },
    ),
    ends(
      "things of System V",
      2,
      () => ({ lang: "bash", code: "ipcmk -M 1000000 -Q -S 5 > /dev/null; ipcs -m | grep -c 0x" }),
      { stdout: "1\n" },
    ),
    ends(
      "descriptors on their way",
      2,
      () => ({
        lang: "py",
        code: "import array, socket\na, b = socket.socketpair()\nfor _ in range(10): a.sendmsg([b'x'], [(1, 1, array.array('i', [1, 2, a.fileno(), b.fileno()]))])\nprint('sent')",
      }),
      { stdout: "sent\n" },
    ),
    ends(
      "bytes that are no text",
      2,
      () => ({ lang: "bash", code: "head -c 60000 /dev/urandom; exec 1>&-" }),
      { code: 0, status: null },
    ),
    {
      name: "a caller who leaves",
      weight: 6,
      run: async (api, random) => {
        const caller = new AbortController();
        const call = api.exec(
          { lang: random(2) === 0 ? "bash" : "py", code: random(2) === 0 ? "" : "sleep" },
          { signal: caller.signal },
        );
        const settled = call.catch(() => undefined);
        await sleep(random(60));
        caller.abort();
        await settled;
      },
    },
    {
      name: "a refused request",
      weight: 4,
      run: async (api, random) => {
        const wrong = [{ lang: "none" }, { files: [{ name: "x" }] }, { args: "x" }, { run_timeout: 0 }][
          random(4)
        ];
        expect((await api.tryExec({ lang: "bash", code: "true", ...wrong })).status).toBe(400);
      },
    },
    {
      name: "somebody else's file",
      weight: 2,
      run: async (api) => {
        const files = [{ ...input, id: "AAAAAAAAAAAAAAAAAAAAA" }];
        expect((await api.tryExec({ lang: "bash", code: "true", files })).status).toBe(403);
      },
    },
  ];
}
