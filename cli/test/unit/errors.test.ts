/** What an operator reads when something is wrong: one text for each class of errors. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parserFor } from "../../src/commands.ts";
import { programOf } from "../../src/exec/program.ts";
import { ROOT, resolveInstance, SERVICES } from "../../src/instance.ts";
import { Problem } from "../../src/problem.ts";
import { serviceAddress } from "../../src/service-address.ts";
import { suggestion } from "../../src/suggestion.ts";
import { restartPlan } from "../../src/supervisor/rolling.ts";
import { meanCopy } from "../../src/svc-line.ts";
import { problemOf } from "../../src/unexpected.ts";

const parser = await parserFor(undefined);

/** As ./svc prints it, without the colour. */
async function shown(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    const { message, advice, exitCode } = problemOf(error);
    return `[${exitCode}] ${message}${advice === undefined ? "" : ` | ${advice}`}`;
  }
  return "no error";
}

const line = async (...argv: string[]) => (await parserFor(argv[0])).parseAsync(argv, { from: "user" });

describe("a command line that is not understood", () => {
  const names = parser.commands.map((command) => command.name());
  const COMMANDS = `Commands: ${names.join(", ")}`;
  it.each([
    [["stauts"], "[2] unknown command stauts; did you mean status?"],
    [["dwon"], "[2] unknown command dwon; did you mean down?"],
    [["ls"], `[2] unknown command ls | ${COMMANDS}`],
    [["deploy"], `[2] unknown command deploy | ${COMMANDS}`],
    [["constructor"], `[2] unknown command constructor | ${COMMANDS}`],
    [["--verison"], "[2] unknown option --verison; did you mean --version?"],
    [["--data"], "[2] unknown option --data | See: ./svc --help"],
    [["exec", "-x"], "[2] unknown option -x | See: ./svc exec --help"],
    [["exec", "--timeuot=5"], "[2] unknown option --timeuot=5; did you mean --timeout?"],
    [["exec", "--zz"], "[2] unknown option --zz | See: ./svc exec --help"],
    [["exec", "--lang"], "[2] --lang needs a value: --lang LANG"],
    [["down", "--help=1"], "[2] unknown option --help=1; did you mean --help?"],
    [["status", "--json=1"], "[2] --json takes no value"],
    [["status", "api"], "[2] unexpected argument api | See: ./svc status --help"],
    [["exec", "a", "b"], "[2] unexpected argument b | Arguments of the program follow after --."],
    [
      ["exec", "a.py", "-c", "1"],
      "[2] -c CODE and FILE exclude each other | Arguments of the program follow after --.",
    ],
    [
      ["exec", "-c", "1", "--url", "h", "--port-offset", "1"],
      "[2] --url and --port-offset exclude each other",
    ],
    [["completion", "tcsh"], "[2] which shell? ./svc completion bash|zsh|fish"],
  ])("%j", async (argv, text) => expect(await shown(() => line(...argv))).toBe(text));

  it("says that no program was given on a terminal", async () => {
    const none = { code: undefined, stdin: undefined };
    expect(await shown(() => programOf(none, [], true))).toBe(
      "[2] no program given | See: ./svc exec --help",
    );
  });
});

describe("suggestion", () => {
  const KNOWN = ["up", "in", "down", "status"];
  it.each([
    ["uo", "up"],
    ["statsu", "status"],
    ["logs", undefined],
    ["c", undefined],
    ["version", undefined],
    ["", undefined],
  ])("for %j is %j", (name, near) => expect(suggestion(name, KNOWN)).toBe(near));
});

describe("the address of a service", () => {
  it.each([
    ["127.0.0.1:3112", "http://127.0.0.1:3112"],
    ["localhost:3112/v1/", "http://localhost:3112"],
    ["[::1]:3112", "http://[::1]:3112"],
    ["https://code.example.com/svc/v1", "https://code.example.com/svc"],
    ["HTTP://h", "http://h"],
  ])("%s is %s", (given, address) => expect(serviceAddress(given)).toBe(address));

  const EXAMPLES = "Examples: 127.0.0.1:3112, https://code.example.com";
  it.each([
    ["a:b:c", `[2] --url is not the address of a service: a:b:c | ${EXAMPLES}`],
    ["", `[2] --url is not the address of a service:  | ${EXAMPLES}`],
    ["ftp://h", `[2] --url is not the address of a service: ftp://h | ${EXAMPLES}`],
    [
      "http://user:secret@h",
      "[2] --url holds a user or a password | Pass a token with --token or SVC_TOKEN.",
    ],
    ["http://h/?a=1", `[2] --url ends with its path: http://h/?a=1 | ${EXAMPLES}`],
  ])("%j is refused", async (given, text) => expect(await shown(() => serviceAddress(given))).toBe(text));
});

describe("a system call that failed", () => {
  const OTHER = "Or choose another data folder with --data-dir DIR or SVC_DATA_DIR.";
  const failed = (code: string, path: string) =>
    Object.assign(new Error(`${code}: nothing for a person`), { code, syscall: "open", path });

  it.each([
    ["EACCES", `[1] no permission for /f | Run ./svc as root. ${OTHER}`],
    ["ENOSPC", `[1] no space left for /f | Free some space (df -h, df -i). ${OTHER}`],
    ["EROFS", `[1] /f is on a read-only file system | Mount it writable. ${OTHER}`],
    ["ENOENT", "[1] /f does not exist | Check the path; it may just have been removed."],
    ["EMFILE", "[1] too many open files in this process | Raise the limit: ulimit -n 4096."],
  ])("%s", async (code, text) => expect(await shown(() => Promise.reject(failed(code, "/f")))).toBe(text));

  it("is told with its path, whatever the call", async () => {
    expect(await shown(() => mkdirSync("/etc/passwd", { recursive: true }))).toBe(
      `[1] /etc/passwd exists, and is not a folder | Move it away. ${OTHER}`,
    );
    expect(await shown(() => writeFileSync("/etc/passwd/x", ""))).toBe(
      `[1] a part of /etc/passwd/x is a file, and a folder is needed | Check the path. ${OTHER}`,
    );
    const none = { "data-dir": "/etc/passwd/x/y", "port-offset": undefined };
    expect(await shown(() => resolveInstance(none, {}))).toMatch(
      /^\[1\] a part of \/etc\/passwd\/x is a file/,
    );
  });

  it("is told with its address", async () => {
    const first = createServer();
    await new Promise<void>((resolve) => first.listen(0, "127.0.0.1", resolve));
    const { port } = first.address() as { port: number };
    const second = createServer();
    const text = await shown(
      () => new Promise((_, reject) => second.once("error", reject).listen(port, "127.0.0.1")),
    );
    first.close();
    expect(text).toBe(`[1] 127.0.0.1:${port} is in use | Free it, or choose other ports: --port-offset N.`);
  });
});

it("./svc shows a failed system call as a sentence, without a stack trace", () => {
  const { stderr, stdout, status } = spawnSync(join(ROOT, "svc"), ["status", "--data-dir", "/etc/passwd/x"], {
    encoding: "utf8",
  });
  expect({ stderr, stdout, status }).toEqual({
    stdout: "",
    status: 1,
    stderr: `error: a part of /etc/passwd/x is a file, and a folder is needed
Check the path. Or choose another data folder with --data-dir DIR or SVC_DATA_DIR.
`,
  });
});

describe("a bug", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-bug-"));
  beforeAll(() => vi.stubEnv("TMPDIR", folder));
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it("is told in a line, and its stack lies in a file that only its user can read", () => {
    const cause = new RangeError("the reason");
    const { message, advice, exitCode } = problemOf(new TypeError("x is not a function\nmore", { cause }));
    expect(message).toBe("x is not a function (this is a bug of svc)");
    expect(exitCode).toBe(1);
    const [, file = ""] = /^Please report it\. Details are in (\/.*)$/.exec(advice ?? "") ?? [];
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toMatch(
      /TypeError: x is not a function[\s\S]+ at [\s\S]+caused by RangeError/,
    );
  });

  it.each([[undefined], ["text"], [null], [new Error("")]])("may be %j", (thrown) => {
    expect(problemOf(thrown).message).toMatch(/\(this is a bug of svc\)$/);
  });

  it("is no Problem, which stays as it is", () => {
    const problem = new Problem("a", "b", 7);
    expect(problemOf(problem)).toBe(problem);
  });
});

describe("restartPlan", () => {
  beforeEach(() => meanCopy({}));
  const SEPARATE = ["redis", "jaild", ...SERVICES] as const;
  const COMBINED = ["redis", "jaild", "runner", "combined"] as const;

  it("takes the order of an upgrade", () => {
    const order = ["file-server", "tool-call-server", "egress-gateway", "runner", "worker", "api"];
    expect(restartPlan(SEPARATE)).toEqual(order);
    expect(restartPlan(COMBINED)).toEqual(["runner", "combined"]);
  });

  it("takes one component, or the process that it runs in", () => {
    expect(restartPlan(SEPARATE, "worker")).toEqual(["worker"]);
    expect(restartPlan(COMBINED, "worker")).toEqual(["combined"]);
    expect(restartPlan(COMBINED, "combined")).toEqual(["combined"]);
  });

  it.each([
    ["jaild", /^\[1\] jaild is not restarted alone: running programs depend on it \| \.\/svc down, then/],
    ["redis", /^\[1\] redis is not restarted alone/],
    [
      "wroker",
      /^\[2\] no component wroker is running; did you mean worker\? \| Components: runner, combined, api, /,
    ],
    ["constructor", /^\[2\] no component constructor is running \| Components: /],
  ])("refuses %s", async (component, text) => {
    expect(await shown(() => restartPlan(COMBINED, component))).toMatch(text);
  });
});
