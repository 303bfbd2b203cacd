/**
 * Secrets of the service, tokens of the own request, addresses and names of the machine: searched for in the memory, the
 * environment, the arguments, the files and all of /proc of programs of every kind.
 */
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { HOLDERS } from "@svc/service-kit/config/holders";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { drive, type Input } from "@svc/test-kit/system/programmatic";
import { expect, test } from "vitest";
import { besiege, evidence, evidenceOf, hostile, PYTHON } from "../support/hostile.ts";
import { attacker, running } from "../support/running.ts";
import { SEARCH, searchFor } from "../support/search.ts";

const { dataDir, cgroup, ports, redisSocket, jailSocket } = running.instance;
const made = readFileSync(join(dataDir, "secrets.env"), "utf8")
  .trim()
  .split("\n")
  .map((line) => line.slice(line.indexOf("=") + 1));
/** Beginnings of sealed and signed texts, and the names of our variables. */
const MARKS = [
  "ceg1.",
  "eyJhbGciOi",
  "Bearer ey",
  "SVC_INTERNAL",
  "EGRESS_GATEWAY",
  "SANDBOX_EXECUTION",
  "X-SVC-",
  "x-svc-",
  "execution_manifest",
  "egress_grant",
];
const ADDRESSES = [...Object.values(ports).map((port) => `127.0.0.1:${port}`), redisSocket, jailSocket];
const signingKey = running.signingKey.split("\n")[1] as string;
const WORDS = [...made, signingKey, ...MARKS, ...ADDRESSES];

const SEARCHING = `${PYTHON}${SEARCH}
look_around()
show(sorted(set(found)))`;

test("all secrets of the service are among what is searched for", () => {
  expect(made.length).toBeGreaterThanOrEqual(5);
  expect(made.every((value) => value.length >= 40)).toBe(true);
});

test("a plain program holds none, in its memory, environment, arguments, files and /proc", async () => {
  const answer = await hostile({ lang: "py", code: SEARCHING, stdin: searchFor(WORDS) });
  expect(evidenceOf(answer)).toEqual([]);
});

test("a program with inputs gets no handle of theirs", async () => {
  const file = await attacker.stage("input.txt", "content");
  const words = [...WORDS, file.id, file.storage_session_id];
  const answer = await hostile({ lang: "py", code: SEARCHING, stdin: searchFor(words), files: [file] });
  expect(evidenceOf(answer)).toEqual([]);
});

test("a program with tools gets no token of its calls, and hears of none in an answer", async () => {
  const code = `${RAW_CLIENT}
${PYTHON}
c = Connection().send(request('{"tool_name":"add","input":{}}'))
status, head, body = c.read()
${SEARCH}
look(head.encode() + body.encode(), "answer")
look_around()
show(sorted(set(found)))`;
  const { answer } = await besiege(() =>
    drive(attacker, { code, stdin: searchFor(WORDS) }, { add: (input: Input) => input }),
  );
  expect(answer).toMatchObject({ status: "completed", stderr: "" });
  expect(JSON.parse(answer.stdout)).toEqual([]);
});

test("Bash and Node.js programs are started with nothing of ours", async () => {
  const code = `cat /proc/*/environ /proc/*/cmdline /proc/self/maps /proc/self/status 2>/dev/null | tr '\\0' '\\n'; env; set`;
  const bash = await hostile({ lang: "bash", code });
  const node = await hostile({
    lang: "js",
    code: "console.log(JSON.stringify([process.env, process.argv, process.execArgv, process.report.getReport().environmentVariables]))",
  });
  for (const text of [bash.stdout, node.stdout]) {
    expect(text.length).toBeGreaterThan(100);
    expect(WORDS.filter((word) => text.includes(word))).toEqual([]);
  }
  const names = Object.keys(HOLDERS);
  expect(
    names.filter((name) => bash.stdout.includes(`${name}=`) || node.stdout.includes(`"${name}"`)),
  ).toEqual([]);
});

test("the control group, the host's name and its processes are not shown", async () => {
  const [groups, names] = await evidence<[string[], string[]]>(`import socket
show([[line.strip().split(":")[2] for line in open("/proc/self/cgroup")], [os.uname().nodename, socket.gethostname(), open("/proc/sys/kernel/hostname").read().strip()]])`);
  expect(groups.join()).not.toContain(cgroup);
  expect(new Set(names)).toEqual(new Set(["sandbox"]));
  if (hostname() !== "sandbox") expect(names).not.toContain(hostname());
});

test("errors that programs provoke tell no path or address of the machine", async () => {
  const requests = [
    {
      lang: "py",
      code: "1/0",
      files: [{ id: "A".repeat(21), storage_session_id: "B".repeat(21), name: "x" }],
    },
    { lang: "py", code: "raise SystemExit('x' * 100)", args: ["\ud800"] },
    { lang: "py", version: "99", code: "" },
    { lang: "../../etc", code: "" },
    { lang: "bash", code: "exec /nonexistent/interpreter" },
    { lang: "py", code: "import nothing_of_this_name" },
    { lang: "js", code: "require('/nonexistent')" },
    { lang: "ts", code: "const x: = 1" },
  ];
  const texts = await besiege(() =>
    Promise.all(requests.map(async (request) => (await attacker.tryExec(request)).text)),
  );
  for (const text of texts) {
    expect(
      [...made, ...ADDRESSES, dataDir, process.cwd(), "ceg1."].filter((word) => text.includes(word)),
    ).toEqual([]);
  }
});
