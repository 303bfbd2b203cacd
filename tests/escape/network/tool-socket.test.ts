/**
 * The tool socket, the one way out of a program with tools: other paths and methods, absolute addresses, requests hidden
 * behind others, pipelines, drips, floods, sizes, passed descriptors. Nothing but a declared tool is ever called.
 */
import { readdirSync } from "node:fs";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { RUNNER } from "@svc/test-kit/system/guests";
import { drive, type Ended, type Input, type Start, type Tools } from "@svc/test-kit/system/programmatic";
import { expect, test } from "vitest";
import { besiege, PYTHON } from "../support/hostile.ts";
import { attacker, running, system } from "../support/running.ts";

const HEAD = String.raw`HEAD = b"POST /tool-call HTTP/1.1\r\nHost: x\r\n"
INNER = request('{"tool_name":"add","input":{"a":666,"b":0}}')
def status_of(data):
    try:
        c = Connection(); c.s.settimeout(15); c.send(data); c.s.shutdown(socket.SHUT_WR)
        return c.read()[0]
    except OSError:
        return 0
`;

interface Outcome {
  answer: Ended;
  /** Arguments of all calls that reached the caller. */
  asked: Input[];
}

/** Runs a program that may call the tool `add`, under watch. */
async function programWithTools(code: string, more: Start = {}): Promise<Outcome> {
  const asked: Input[] = [];
  const tools: Tools = {
    add: (input: Input) => {
      asked.push(input);
      return Number(input.a) + Number(input.b);
    },
  };
  const start = { code: `${RAW_CLIENT}\n${HEAD}\n${code}`, timeout: 40_000, ...more };
  const { answer } = await besiege(() => drive(attacker, start, tools));
  return { answer, asked };
}

/** The lines of a program that is not to reach anybody. */
async function unheard(code: string): Promise<string[]> {
  const { answer, asked } = await programWithTools(code);
  expect(answer).toMatchObject({ status: "completed", stderr: "", tool_calls_made: 0 });
  expect(asked).toEqual([]);
  return answer.stdout.trimEnd().split("\n");
}

test("every path but its own is refused, also of services that stand behind it", async () => {
  const paths = [
    "/",
    "/tool-call/",
    "/tool-call?x=1",
    "/tool-call#",
    "//tool-call",
    "/./tool-call",
    "/x/../tool-call",
    "/%74ool-call",
    "/TOOL-CALL",
    "/tool-call%00",
    "/sessions",
    "/health",
    "/metrics",
    "/internal/egress-grants",
    "/internal/ptc-callback-token",
    "/v1/exec",
    "/execute",
    "*",
    "",
  ];
  const lines = await unheard(`for path in ${JSON.stringify(paths)}:
    print(status_of(request('{"tool_name":"add","input":{"a":1,"b":1}}', path=path)))`);
  expect(lines).toHaveLength(paths.length);
  for (const line of lines) expect(line).toMatch(/^(0|400|404|405)$/);
});

test("absolute addresses and tunnels lead nowhere", async () => {
  const ports = Object.values(running.instance.ports);
  const lines = await unheard(`body = '{"tool_name":"add","input":{"a":1,"b":1}}'
for port in ${JSON.stringify(ports)}:
    for scheme in ("http", "https", "unix", "file"):
        print(status_of(request(body, path=f"{scheme}://127.0.0.1:{port}/tool-call")))
    print(status_of(request("", path=f"127.0.0.1:{port}", method="CONNECT")))
    print(status_of(request(body, path="/tool-call", headers=f"Host: 127.0.0.1:{port}\\r\\n", method="GET")))
    print(status_of(request(body, path="/sessions", headers=f"X-Forwarded-Host: 127.0.0.1:{port}\\r\\n")))`);
  expect(lines).toHaveLength(7 * ports.length);
  for (const line of lines) expect(line).toMatch(/^(0|400|404|405)$/);
});

test("methods but POST are refused", async () => {
  const lines =
    await unheard(`for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "post", "POSTX", "CONNECT", "PRI", "\\x00POST"):
    print(status_of(request('{"tool_name":"add","input":{"a":1,"b":1}}', method=method)))`);
  expect(lines).toHaveLength(12);
  for (const line of lines) expect(line).toMatch(/^(0|400|404|405)$/);
});

test("a second request behind the first is never served: lengths, chunks and both", async () => {
  const lines = await unheard(String.raw`n = len(INNER)
tries = [
  HEAD + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % n + INNER,
  HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n%x\r\n" % n + INNER + b"\r\n0\r\n\r\n",
  HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding: identity, chunked\r\nContent-Length: 0\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding:\n chunked\r\n\r\n0\r\n\r\n" + INNER,
  HEAD + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % n + INNER,
  HEAD + b"Content-Length: -1\r\n\r\n" + INNER,
  HEAD + b"Content-Length: 0x0\r\n\r\n" + INNER,
  HEAD + b"Content-Length: 18446744073709551616\r\n\r\n" + INNER,
  HEAD + b"Content-Length: 1e1\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + INNER,
  HEAD + b"Transfer-Encoding: chunked\r\n\r\n0;ext=\"\r\n\r\n" + INNER,
  HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n" + INNER,
  HEAD + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n" + INNER,
  HEAD + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\nContent-Length: 0\r\n\r\n" + INNER,
  HEAD + b"\0: x\r\nContent-Length: 0\r\n\r\n" + INNER,
]
for data in tries: print(status_of(data))`);
  expect(lines).toHaveLength(18);
  for (const line of lines) expect(line).toMatch(/^(0|100|400|405|411|413|417|431|501)$/);
});

test("a pipeline is cut after its first request", async () => {
  const { answer, asked } = await programWithTools(`def many(count):
    each = lambda n: request(json.dumps({"tool_name": "add", "input": {"a": n, "b": 0}}))
    try: return Connection().send(b"".join(each(n) for n in range(count))).read()[2]
    except OSError: return "cut"
print(many(50)); print(call("add", a=1000, b=1))`);
  expect(answer.status).toBe("completed");
  expect(answer.stdout).toMatch(/^(cut|0|)\n1001\n$/);
  expect(asked.filter(({ a }) => a !== 0)).toEqual([{ a: 1000, b: 1 }]);
  expect(asked.length).toBeLessThanOrEqual(2);
});

test("bodies that are no call are refused: types, nesting, duplicates, prototypes, invalid UTF-8", async () => {
  const { answer, asked } = await programWithTools(String.raw`bodies = [
  b"", b"null", b"[]", b"1", b'"x"', b"{}", b'{"tool_name":1,"input":{}}', b'{"tool_name":["add"],"input":{}}', b'{"tool_name":null,"input":{}}',
  b'{"tool_name":"add","input":[]}', b'{"tool_name":"add","input":null}', b'{"tool_name":"add","input":"{}"}', b'{"tool_name":"add","input":NaN}',
  b'{"tool_name":"add","input":{}', b'{"tool_name":"add","input":{}}x', b"\xff\xfe", b'{"tool_name":"add","input":{"a":"\xff"}}' + b"x",
  b"[" * 100000 + b"]" * 100000,
]
print([status_of(request(body)) for body in bodies])
print([call("add", a=1, b=2)])`);
  expect(answer).toMatchObject({ status: "completed", stderr: "" });
  const [refusals = "", right] = answer.stdout.trimEnd().split("\n");
  const statuses = JSON.parse(refusals) as number[];
  expect(statuses).toHaveLength(18);
  expect(statuses.every((status) => status >= 400 && status < 500)).toBe(true);
  expect(right).toBe("[3]");
  expect(asked).toEqual([{ a: 1, b: 2 }]);
});

test("requests that are too large are cut off, by head, body and chunks, and calls go on", async () => {
  const { answer, asked } = await programWithTools(String.raw`def pour(start, piece, times):
    try:
        c = Connection().send(start)
        for _ in range(times): c.send(piece)
        return c.read()[0]
    except OSError: return 0
print([
  pour(HEAD, b"X: " + b"y" * 4000 + b"\r\n", 50),
  pour(HEAD + b"X: ", b"y" * 65536, 50),
  pour(HEAD, b"X: y\r\n" , 20000),
  pour(b"POST /" , b"a" * 65536, 20),
  pour(HEAD + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536, 400),
  pour(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n", 400),
  pour(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"e" * 4000 + b"\r\nx\r\n", 2000),
])
print(call("add", a=2, b=2))`);
  expect(answer).toMatchObject({ status: "completed", stderr: "" });
  const [refusals = "", right] = answer.stdout.trimEnd().split("\n");
  for (const status of JSON.parse(refusals) as number[]) expect([0, 400, 413, 431]).toContain(status);
  expect(right).toBe("4");
  expect(asked).toEqual([{ a: 2, b: 2 }]);
});

test("one byte at a time from many connections does not hold up a call beside them", async () => {
  const { answer, asked } = await programWithTools(`def drip():
    try:
        c = Connection()
        for byte in HEAD * 3: c.send(bytes([byte])); time.sleep(0.05)
    except OSError: pass
for _ in range(40): threading.Thread(target=drip, daemon=True).start()
time.sleep(0.3)
print(call("add", a=3, b=3))`);
  expect(answer).toMatchObject({ status: "completed", stdout: "6\n" });
  expect(asked).toEqual([{ a: 3, b: 3 }]);
});

test("thousands of connections are bounded, and calls go on when they are closed", async () => {
  const { answer } = await programWithTools(`import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
for _ in range(3):
    held = []
    for _ in range(2500):
        try: held.append(Connection())
        except OSError: pass
    for c in held: c.s.close()
def patiently():
    for _ in range(100):
        try: return call("add", a=4, b=4)
        except (OSError, RuntimeError): time.sleep(0.1)
print(patiently())`);
  expect(answer).toMatchObject({ status: "completed", stdout: "8\n" });
});

test("descriptors passed over it arrive nowhere, and none comes back", async () => {
  const sandbox = system.pid(RUNNER);
  const before = readdirSync(`/proc/${sandbox}/fd`).length;
  let during = 0;
  const look = setInterval(() => {
    during = Math.max(during, readdirSync(`/proc/${sandbox}/fd`).length);
  }, 50);
  const { answer, asked } = await programWithTools(`held = [open("/dev/null") for _ in range(200)]
import array
sent = received = 0
connections = []
for _ in range(20):
    c = Connection(); connections.append(c)
    for piece in (HEAD, b"Content-Length: 40\\r\\n\\r\\n", b"{"):
        try: socket.send_fds(c.s, [piece], [f.fileno() for f in held]); sent += len(held)
        except OSError: break
time.sleep(1)
for c in connections:
    c.s.settimeout(0.05)
    try: received += len(socket.recv_fds(c.s, 10, 100)[1])
    except OSError: pass
    c.s.close()
print(sent > 2000, received, call("add", a=5, b=5))`).finally(() => clearInterval(look));
  expect(answer).toMatchObject({ status: "completed", stdout: "True 0 10\n" });
  expect(asked).toEqual([{ a: 5, b: 5 }]);
  // The connections themselves, and no descriptor that came over them.
  expect(during - before).toBeLessThan(150);
});

test("it tells nothing of the process at its other end, and gives no hold on it", async () => {
  const lines = await unheard(`${PYTHON}
import signal, struct
s = Connection().s
print(json.dumps([struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)), attempt(lambda: s.getsockopt(socket.SOL_SOCKET, 31, 100))]))
results = set()
try: pidfd = struct.unpack("i", s.getsockopt(socket.SOL_SOCKET, 77, 4))[0]
except OSError: pidfd = None
if pidfd is not None:
    for number in (0, 9, 15, 19): results.add(attempt(lambda: signal.pidfd_send_signal(pidfd, number)))
    results.update([call(438, pidfd, 0, 0), call(308, pidfd, 0x20000), call(434, pidfd, 0), attempt(lambda: os.waitid(os.P_PIDFD, pidfd, os.WEXITED)),
      attempt(lambda: os.stat(f"/proc/self/fd/{pidfd}/status"))])
    results.update("pid " + line.split(":")[1].strip() for line in open(f"/proc/self/fdinfo/{pidfd}") if line.startswith("Pid:"))
print(json.dumps(sorted(results)))`);
  const [peer, results] = lines.map((line) => JSON.parse(line)) as [
    [[pid: number, uid: number, gid: number], groups: string],
    string[],
  ];
  // The numbers that stand for nobody in the jail's own users and processes.
  expect(peer[0]).toEqual([0, 65_534, 65_534]);
  expect(results.filter((result) => result === "ok" || /^pid [1-9]/.test(result))).toEqual([]);
});

test("the socket and the descriptions beside it cannot be changed, replaced or held", async () => {
  const lines = await unheard(`import errno, fcntl
actions = [lambda: os.unlink(PATH), lambda: os.rename(PATH, PATH + "x"), lambda: open("/run/svc/mine", "w"), lambda: os.chmod(PATH, 0),
  lambda: open("/run/svc/tools.json", "w"), lambda: os.mkdir("/run/svc/d"), lambda: os.link(PATH, "/mnt/data/l"), lambda: os.symlink("x", "/run/svc/x"),
  lambda: socket.socket(socket.AF_UNIX).bind("/run/svc/mine.sock"), lambda: os.truncate("/run/svc/tools.json", 0), lambda: os.utime(PATH, (0, 0)),
  lambda: os.setxattr(PATH, "user.x", b"y"), lambda: os.listdir("/run/svc"), lambda: open("/run/svc/../../run/svc/other", "w")]
for action in actions:
    try: action(); print("done")
    except OSError as error: print(errno.errorcode[error.errno])`);
  expect(lines).toHaveLength(14);
  for (const line of lines) expect(line).toMatch(/^(EROFS|EACCES|EPERM|EXDEV|EOPNOTSUPP|ENOTSUP)$/);
});

test("a program without tools finds no socket, whatever it asks for", async () => {
  const answer = await besiege(() =>
    attacker.exec({
      lang: "py",
      code: `import glob, os
print("SANDBOX_TOOL_SOCKET" in os.environ, [p for p in ("/run/svc/3190.sock", "/run/svc/tools.json", "/run/svc/tools.tsv") if os.path.exists(p)], glob.glob("/run/*"))`,
      tools: [{ name: "add" }],
      ptc: { mode: "live" },
      tool_call_socket: true,
    }),
  );
  expect(answer).toMatchObject({ stdout: "False [] ['/run/svc']\n", code: 0 });
});
