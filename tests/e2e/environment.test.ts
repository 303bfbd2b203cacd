/** docs/environment.md: each of its commands shows in a jail what stands beside it, and each of its other statements holds. */
import { codeOf, readPage } from "@svc/test-kit/programs/page";
import { Api, refTo } from "@svc/test-kit/system/api";
import { newMarker, processesWith } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const PAGE = readPage("docs/environment.md");
const ASKED = ["Who and where am I?", "Which files are there?", "What is installed?", "What can I reach?"];
const LIMITS = "How much may I use?";
const api = new Api(sharedSystem().url);

/** Rows of a question, a command, and its answer. */
const rows = [...ASKED, LIMITS]
  .flatMap((section) => PAGE.rows(section))
  .map(([question = "", command, answer]) => [question, codeOf(command), codeOf(answer)] as const)
  .filter(([, commands, answers]) => commands.length === 1 && answers.length === 1)
  .map(([question, [command = ""], [answer = ""]]) => [question, command, answer] as const);

const bash = (code: string, more: object = {}) => api.exec({ lang: "bash", code, ...more });
const python = (code: string, more: object = {}) => api.exec({ lang: "py", code, ...more });

test("the page has commands in every section", () => {
  for (const section of [...ASKED, LIMITS]) expect(PAGE.rows(section).length, section).toBeGreaterThan(2);
  expect(rows.length).toBeGreaterThan(25);
});

test.each(rows)("%s: %s", async (_question, command, answer) => {
  const { stdout, stderr } = await bash(command);
  expect(stdout.trim().replaceAll(/\s+/g, " "), stderr).toBe(answer);
});

test("variables of the request are added, and replace those that are there", async () => {
  const env = { LANG: "C", GREETING: "hello", OMP_NUM_THREADS: "2" };
  expect((await bash("echo $LANG $GREETING $OMP_NUM_THREADS", { env })).stdout).toBe("C hello 2\n");
  expect((await bash("echo $OMP_NUM_THREADS")).stdout).toBe("1\n");
});

test("new and changed files are in the answer, in folders and hidden ones, too; links and what lies elsewhere are not", async () => {
  const files = (await api.upload({ "kept.txt": "1", "gone.txt": "2", "changed.txt": "3" })).map((file) =>
    refTo(file),
  );
  const code = `
mkdir -p sub empty; echo x | tee new.txt sub/new.txt .hidden changed.txt /tmp/t /dev/shm/s >/dev/null
ln -s new.txt link; rm gone.txt; ls -A /var/tmp`;
  const answer = await bash(code, { files });
  expect(answer.stdout).toBe("t\n");
  const fresh = answer.files.filter((file) => !("inherited" in file)).map(({ name }) => name);
  expect(fresh.sort()).toEqual([".hidden", "changed.txt", "empty/.dirkeep", "new.txt", "sub/new.txt"]);
  expect(answer.deleted_files).toEqual(["gone.txt"]);
  expect(answer.files_omitted).toEqual([{ name: "link", reason: "type" }]);
  expect((await bash("ls -A . /tmp /dev/shm | grep -v : | xargs")).stdout).toBe("script.sh\n");
});

test("files beyond the limits of an answer are left out, and stderr says why", async () => {
  const answer = await bash("for n in {1..52}; do echo >$n; done; head -c 11000000 /dev/zero >large.bin");
  expect(answer.files).toHaveLength(50);
  expect(answer.files_omitted?.map(({ reason }) => reason).sort()).toEqual(["count", "count", "size"]);
  expect(answer.stderr).toMatch(
    /^\[sandbox\] Output file omitted: large\.bin \(size: 11,000,000 bytes, at most .*\)$/m,
  );
});

test("a figure that is shown becomes a file", async () => {
  const { files } = await python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()");
  expect(files.map(({ name }) => name)).toEqual(["plot_1.png"]);
});

/** For each row of the table of what happened: a program, and more of its request. `seen`: what the program printed. */
const HAPPENED: Record<string, { code: string; more?: object; seen?: string; status: string | null }> = {
  "time is over": {
    code: "trap 'echo handler' TERM EXIT; while :; do :; done",
    more: { run_timeout: 500 },
    status: "TO",
  },
  "memory is used up": {
    code: `python3 -c 'x = b"1" * (1 << 30)'; echo after`,
    status: "ML",
  },
  "a stream is longer than its limit": { code: "yes | head -c 70000; echo end >&2", status: "OL" },
  "no process or thread can be made": {
    code: `python3 - <<'END'
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(30); os._exit(0)
except OSError as e: print(e.strerror)
END`,
    seen: "Resource temporarily unavailable",
    status: null,
  },
  "a file grows beyond its limit": {
    code: `python3 - <<'END'
try: open("f", "wb").truncate(0); f = open("f", "wb"); [f.write(bytes(1 << 20)) for _ in range(200)]
except OSError as e: print(e.strerror)
import os; os._exit(0)
END`,
    seen: "File too large",
    status: null,
  },
  "`/mnt/data` or `/tmp` is full": {
    code: `for n in 1 2 3 4 5 6 7; do head -c 90M /dev/zero >$n; done 2>&1 | grep -o 'No space left on device' | head -1`,
    seen: "No space left on device",
    status: null,
  },
};

describe("what happened", () => {
  const told = PAGE.rows(LIMITS).filter(([, , says]) => says?.includes("[sandbox]"));

  test("the table has no row that these tests do not provoke", () => {
    expect(told.map(([what]) => what).sort()).toEqual(Object.keys(HAPPENED).sort());
  });

  test.each(Object.entries(HAPPENED))("%s", async (what, { code, more, seen, status }) => {
    const [, , says] = told.find(([row]) => row === what) ?? [];
    const note = codeOf(says).find((text) => text.startsWith("[sandbox]")) ?? "";
    const answer = await bash(code, more);
    expect(answer.status).toBe(status);
    const [start = "", end = ""] = note.split("…");
    const last = answer.stderr.trimEnd().split("\n").at(-1) ?? "";
    expect([last.startsWith(start), last.endsWith(end), last]).toEqual([true, true, last]);
    if (status === null) expect(answer.limits_reached).toHaveLength(1);
    if (seen !== undefined) expect(answer.stdout).toContain(seen);
    expect(answer.stdout).not.toMatch(/handler|after/);
  });
});

test("a run is over when its first process has ended: what it left in the background is killed", async () => {
  const marker = newMarker();
  const answer = await bash(`(exec -a ${marker} sleep 60) >/dev/null 2>&1 & echo said; exit 3`);
  expect(answer).toMatchObject({ stdout: "said\n", code: 3, signal: null });
  expect(processesWith(marker)).toEqual([]);
  expect(await bash("kill -TERM $$")).toMatchObject({ signal: "SIGTERM", status: "SG" });
});

test("random numbers and session ids are new in each run", async () => {
  const code = "import random, uuid, numpy; print(random.random(), uuid.uuid4(), numpy.random.rand())";
  const script =
    "console.log(Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(2)).join('-'))";
  const node = () => api.exec({ lang: "js", code: script });
  const all = await Promise.all([python(code), python(code), python(code), node(), node(), node()]);
  expect(new Set(all.flatMap(({ stdout }) => stdout.trim().split(" "))).size).toBe(18);
  expect(new Set(all.map(({ session_id }) => session_id)).size).toBe(6);
});
