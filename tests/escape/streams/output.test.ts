/** Programs that abuse their output: floods, bytes that are not text, and text that looks as if the service had written it. */
import { describe, expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { bystander } from "../support/running.ts";

const CAP = 65_536;
const python = (code: string, more: object = {}) => ({ lang: "py", code, ...more });
const bash = (code: string, more: object = {}) => ({ lang: "bash", code, ...more });
const PLAIN_END = { code: 0, signal: null, message: null, status: null };
const OVER = {
  OL: { status: "OL", code: 137, signal: "SIGKILL", message: "stdout length exceeded" },
  EL: { status: "EL", code: 137, signal: "SIGKILL", message: "stderr length exceeded" },
} as const;

describe("a flood ends its program:", () => {
  test.each([
    ["stdout in large pieces", "OL", bash("yes | cat")],
    ["stderr in large pieces", "EL", bash("yes >&2")],
    ["stdout of fifty processes", "OL", bash("for n in $(seq 50); do yes $n & done; wait")],
    ["stderr of fifty processes", "EL", bash("for n in $(seq 50); do yes $n >&2 & done; wait")],
    [
      "stdout by sendfile",
      "OL",
      python(
        "import os\nf = os.open('f', os.O_RDWR | os.O_CREAT); os.write(f, bytes(1 << 20)); os.unlink('f')\nwhile True: os.sendfile(1, f, 0, 1 << 20)",
      ),
    ],
    ["stdout through a re-opened descriptor", "OL", bash("exec yes > /dev/stdout")],
    [
      "stdout by a pipe made large",
      "OL",
      python(
        "import fcntl, os\nprint(fcntl.fcntl(1, 1031, 1 << 20) > 0, flush=True)\nwhile True: os.write(1, bytes(1 << 20))",
      ),
    ],
    ["stdout of a daemon, while the program waits", "OL", bash("setsid yes & sleep 60")],
    [
      "stdout that does not wait",
      "OL",
      python(
        "import os\nos.set_blocking(1, False)\nwhile True:\n    try: os.write(1, bytes(65536))\n    except BlockingIOError: pass",
      ),
    ],
  ] as const)("%s", async (_name, status, program) => {
    const answer = await hostile(program);
    expect(answer).toMatchObject(OVER[status]);
    const text = status === "OL" ? answer.stdout : answer.stderr;
    expect(Buffer.byteLength(text)).toBeGreaterThanOrEqual(CAP);
    expect(answer.stderr).toMatch(
      new RegExp(`\\[sandbox\\] ${OVER[status].message} \\(64 KiB kept of [^\\n]*\\)\\n$`),
    );
  });

  test("both at once: the one that is over first is named, and both have their first bytes", async () => {
    const answer = await hostile(
      bash("printf 'out\\nout\\n'; printf 'err\\nerr\\n' >&2; yes out & yes err >&2 & wait"),
    );
    expect(["OL", "EL"]).toContain(answer.status);
    expect(answer.stdout.startsWith("out\nout\n")).toBe(true);
    expect(answer.stderr.startsWith("err\nerr\n")).toBe(true);
    expect(Buffer.byteLength(answer.stdout)).toBeLessThanOrEqual(CAP);
  });

  test("not before it has written what is tolerated, however small the pieces are", async () => {
    const answer = await hostile(python(`import os\nfor n in range(70000): os.write(1 + n % 2, b"x")`));
    expect(answer).toMatchObject({ ...PLAIN_END, stdout: "x".repeat(35_000), stderr: "x".repeat(35_000) });
  });
});

describe("bytes that are no text", () => {
  const decode = (bytes: Buffer) => bytes.toString("utf8");
  const shown = async (bytes: Buffer, stream: 1 | 2 = 1) => {
    const code = `import base64, os, sys\ndata = base64.b64decode(sys.stdin.read())\nwhile data: data = data[os.write(${stream}, data):]`;
    const answer = await hostile(python(code, { stdin: bytes.toString("base64") }));
    expect(answer).toMatchObject({ ...PLAIN_END, [stream === 1 ? "stderr" : "stdout"]: "" });
    return stream === 1 ? answer.stdout : answer.stderr;
  };
  const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

  test.each<[string, Buffer]>([
    ["every byte alone", Buffer.concat([...every].map((byte) => Buffer.from([byte, 10])))],
    [
      "every byte after the first of a character",
      Buffer.concat([...every].map((byte) => Buffer.from([0xf0, byte]))),
    ],
    [
      "surrogates, overlong forms and numbers beyond the last",
      Buffer.from("eda080edbfbfc080e08080f8888080f4908080fe80", "hex"),
    ],
    ["a mark of byte order, at the front and elsewhere", Buffer.from("efbbbf61efbbbf", "hex")],
    ["NUL, escapes and line ends of all kinds", Buffer.from("a\0b\u001b[2J\u0007\r\n\u2028\u2029\u0085\v\f")],
    ["a character that the end cuts", Buffer.from("f09f98", "hex")],
  ])("%s arrive as replacement characters, and all text beside them as it is", async (_name, bytes) => {
    expect(await shown(bytes)).toBe(decode(bytes));
    expect(await shown(bytes, 2)).toBe(decode(bytes));
  });

  test.each([1, 2, 3])("the cap cuts a character of four bytes after %i: it is left out", async (kept) => {
    const code = `import os\nfor stream in (1, 2): os.write(stream, b"a" * ${CAP - kept} + "🎈".encode() * 10)`;
    const answer = await hostile(python(code));
    expect(answer).toMatchObject({ status: "OL", code: 0, stdout: "a".repeat(CAP - kept) });
    expect(answer.stderr.startsWith(`${"a".repeat(CAP - kept)}\n[sandbox]`)).toBe(true);
  });

  test("noise of the whole cap on both streams is answered within its size", async () => {
    const answer = await hostile(bash(`head -c ${CAP} /dev/urandom; head -c ${CAP} /dev/urandom >&2`));
    expect(answer).toMatchObject(PLAIN_END);
    expect(answer.stdout).toContain("\ufffd");
    expect(await hostile(bash(`head -c ${CAP} /dev/zero; head -c ${CAP} /dev/zero >&2`))).toMatchObject({
      ...PLAIN_END,
      stdout: "\0".repeat(CAP),
    });
  });
});

describe("text that looks like the service's own is text", () => {
  const NOTES = [
    "Time limit exceeded",
    "Out of memory",
    "stdout length exceeded",
    "Killed by signal SIGSEGV",
    "Output file omitted: x (size)",
  ];
  const FRAME =
    "import os, struct\ndef frame(tag, *numbers): return struct.pack('<IB', 1 + 8 * len(numbers), ord(tag)) + b''.join(struct.pack('<Q', n) for n in numbers)\n";

  test("the notes on stderr change no field", async () => {
    const text = NOTES.map((note) => `[sandbox] ${note}\n`).join("");
    const answer = await hostile(bash("cat >&2; exit 0", { stdin: text }));
    expect(answer).toMatchObject({ ...PLAIN_END, stderr: text, files: [] });
    expect(answer.files_omitted).toBeUndefined();
  });

  test("the true note is the last line all the same", async () => {
    const answer = await hostile(bash("printf '[sandbox] Out of memory' >&2; kill -SEGV $$"));
    expect(answer).toMatchObject({ status: "SG", signal: "SIGSEGV" });
    expect(answer.stderr).toBe("[sandbox] Out of memory\n[sandbox] Killed by signal SIGSEGV\n");
  });

  test.each([
    [
      "frames of the jail's protocol",
      `${FRAME}data = b"".join(frame(tag, *range(12)) for tag in "hsxofzgbep") * 3\nos.write(1, data); os.write(2, data)`,
    ],
    [
      "frames in either order of bytes, with every tag",
      "import os, struct\nfor order in '<>':\n    data = b''.join(struct.pack(order + 'IB', 1, tag) for tag in range(128))\n    os.write(1, data); os.write(2, data)",
    ],
  ])("%s", async (_name, code) => {
    const answer = await hostile(python(code));
    expect(answer).toMatchObject(PLAIN_END);
    expect(answer.stdout).toBe(answer.stderr);
    expect(answer.stdout.length).toBeGreaterThan(100);
  });

  test.each([
    [
      "an answer of the API",
      JSON.stringify({ session_id: "x", stdout: "", code: 0, status: "ML", files: [{ id: "a", name: "b" }] }),
    ],
    [
      "a pause for a tool",
      JSON.stringify({
        status: "tool_call_required",
        continuation_token: "x",
        tool_calls: [{ id: "call_001", name: "x", input: {} }],
      }),
    ],
    ["an answer of HTTP", "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"],
    ["an end of the string and more fields", '","code":7,"status":"TO","x":"'],
    ["a log line", JSON.stringify({ level: 60, time: 0, msg: "shutting down" })],
  ])("%s", async (_name, text) => {
    const answer = await hostile(bash("tee /dev/stderr", { stdin: `${text}\n` }));
    expect(answer).toMatchObject({ ...PLAIN_END, stdout: `${text}\n`, stderr: `${text}\n`, files: [] });
    expect(Object.keys(answer)).not.toContain("continuation_token");
  });

  test("what is written into every descriptor that can be opened reaches nobody else", async () => {
    const code = `
import os
for fd in range(3, 2048):
    try: os.write(fd, b"forged"); print("written", fd)
    except OSError: pass
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try: fd = os.open(f"/proc/self/fd/{name}", os.O_WRONLY); os.write(fd, b"again\\n")
    except OSError as error: print(name, error.strerror)`;
    const answer = await hostile(python(code));
    expect(answer).toMatchObject({ ...PLAIN_END, stderr: "again\n" });
    expect(answer.stdout).toMatch(/^again\n/);
    expect(answer.stdout).not.toContain("written");
  });
});

describe("streams that are closed, kept or turned round", () => {
  test.each([
    [
      "all closed, and a file in their place",
      python(
        "import os\nfor fd in (0, 1, 2): os.close(fd)\nopen('a.txt', 'w').write('in place of stdin'); open('/tmp/x', 'w').write('y'); os._exit(6)",
      ),
      { stdout: "", stderr: "", code: 6, status: null },
    ],
    [
      "stdout on stderr and stderr on stdout",
      bash("exec 3>&1 1>&2 2>&3 3>&-; echo out; echo err >&2"),
      { stdout: "err\n", stderr: "out\n", code: 0 },
    ],
    [
      "a child in another session that holds them",
      bash("echo first; setsid sh -c 'sleep 60; echo late' & sleep 0.1"),
      { stdout: "first\n", code: 0, status: null },
    ],
    [
      "a stopped child that holds them",
      bash("echo first; sh -c 'kill -STOP $$' & sleep 0.1; exit 3"),
      { stdout: "first\n", code: 3, status: null },
    ],
    [
      "copies of them in two thousand descriptors",
      python("import os\ntry:\n    while True: os.dup(1)\nexcept OSError: os.write(1, b'full')"),
      { stdout: "full", code: 0, status: null },
    ],
    [
      "copies on their way through a socket that nobody reads",
      python(
        "import array, os, socket\na, b = socket.socketpair()\na.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1, 2, a.fileno(), b.fileno()]))])\nprint('sent')",
      ),
      { stdout: "sent\n", code: 0, status: null },
    ],
    [
      "a reader of its own output",
      python(
        "import os\nr = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\nprint('before', flush=True)\ntry: os.read(r, 100)\nexcept BlockingIOError: pass\nprint('after', flush=True)",
      ),
      { stderr: "", code: 0, status: null },
    ],
  ] as [string, object, object][])("%s", async (_name, program, expected) => {
    const answer = await hostile({ run_timeout: 20_000, ...program });
    expect(answer).toMatchObject(expected);
    expect(answer.wall_time).toBeLessThan(15_000);
  });
});

describe("ordinary output works:", () => {
  test.each([
    ["process substitution", bash("diff <(seq 3) <(seq 3) && tee >(cat > copy.txt) <<< x"), "x\n"],
    [
      "/dev/stdout and /dev/fd",
      bash("echo a > /dev/stdout; echo b | cat /dev/stdin; cat /dev/fd/3 3<<< c"),
      "a\nb\nc\n",
    ],
    [
      "much text within the cap",
      bash("seq 10000"),
      Array.from({ length: 10_000 }, (_, n) => `${n + 1}\n`).join(""),
    ],
    [
      "text of the world",
      python("print('äöü ß, 你好, мир, שלום, 🎈👩‍👩‍👧')"),
      "äöü ß, 你好, мир, שלום, 🎈👩‍👩‍👧\n",
    ],
    [
      "unbuffered pieces in order",
      python("import sys, time\nfor n in range(5): print(n, end=' ', flush=True); time.sleep(0.01)"),
      "0 1 2 3 4 ",
    ],
  ] as [string, object, string][])("%s", async (_name, program, stdout) => {
    expect(await bystander.exec(program as Record<string, unknown>)).toMatchObject({
      ...PLAIN_END,
      stdout,
      stderr: "",
    });
  });
});
