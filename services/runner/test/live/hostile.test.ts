/** Programs that abuse their tool socket: whatever they send, they get no more than their own tools, and nobody else notices. */
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  endedOf,
  eventually,
  okOf,
  type ProgramSystem,
  pausedOf,
  startProgramSystem,
} from "../support/programs.ts";

let system: ProgramSystem;
beforeAll(async () => {
  system = await startProgramSystem();
});
afterAll(() => system?.stop());

const program = (text: string) => `${RAW_CLIENT}\n${text}`;
/** Runs a program that makes no call that counts. */
const run = async (text: string) => endedOf(await system.start(await system.execution(), program(text)));
const linesOf = async (text: string) => {
  const { stdout, stderr, tool_calls_made } = await run(text);
  expect([stderr, tool_calls_made]).toEqual(["", 0]);
  return stdout.trimEnd().split("\n");
};

describe("the tool socket", () => {
  it("takes POST /tool-call and nothing else", async () => {
    const lines = await linesOf(`
body = json.dumps({"tool_name": "add", "input": {}})
for path in ["/", "/tool-call/", "/tool-call?x=1", "/internal/egress-grants", "http://127.0.0.1/tool-call", "/tool-calls", "/sessions"]:
    print(path, Connection().send(request(body, path=path)).read()[0])
for method in ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"]:
    print(method, Connection().send(request(body, method=method)).read()[0])
for raw in [b"nonsense\\r\\n\\r\\n", b"CONNECT 127.0.0.1:22 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", b"\\x16\\x03\\x01" * 99]:
    print("raw", Connection().send(raw).read()[0])`);
    expect(lines.map((line) => line.split(" ").at(-1))).toEqual([
      ...Array(7).fill("404"),
      ...Array(5).fill("405"),
      ...Array(3).fill("0"),
    ]);
  });

  it("refuses what is not exactly the protocol, and no call is made", async () => {
    const lines = await linesOf(`
bodies = ["", "{", "[]", "null", "7", '"x"', "{}", '{"tool_name":"add"}', '{"tool_name":"add","input":[]}',
  '{"tool_name":"add","input":null}', '{"tool_name":7,"input":{}}', '{"tool_name":"add","input":{},"call_id":"call_001"}',
  b'{"tool_name":"add","input":{"a":"\\xff"}}', '{"tool_name":"add","input":{}} {}']
for body in bodies:
    print(Connection().send(request(body)).read()[0])
raw = "Content-Type: application/vnd.svc.tool-input\\r\\n"
for body, headers in [("{}", raw), ("{}", raw + "X-Tool-Index: 9\\r\\n"), ("{}", raw + "X-Tool-Index: -1\\r\\n"), ("[1]", raw + "X-Tool-Index: 0\\r\\n"),
                      ('{},"tool_name":"x"', raw + "X-Tool-Index: 0\\r\\n")]:
    print(Connection().send(request(body, headers=headers)).read()[0])`);
    expect(lines).toEqual(Array(19).fill("400"));
  });

  it("believes no header of the program: ids and tokens are the relay's own", async () => {
    const one = await system.execution();
    const other = await system.execution();
    const headers = `X-Tool-Call-ID: call_666\\r\\nX-Execution-ID: ${other.id}\\r\\nX-Callback-Token: ${other.callbackToken}\\r\\n`;
    const text = program(`
print(Connection().send(request('{"tool_name":"add","input":{"a":1}}', headers="${headers}")).read()[2])`);
    expect(pausedOf(await system.start(one, text)).pending_call_ids).toEqual(["call_001"]);
    await system.answer(one, [{ call_id: "call_001", result: "own" }]);
    expect((await system.toolServer.pending(other.exchange)).pending_calls).toEqual([]);
    expect(endedOf(await system.resume(one, 2, ["call_001"])).stdout).toBe('"own"\n');
  });

  it.each([
    ["a first attempt", {}],
    [
      "a repeated program",
      {
        mode: "replay" as const,
        round: 2,
        history: [{ call_id: "call_001", name: "add", input_json: "{}", outcome: { result_json: "1" } }],
      },
    ],
  ])("refuses deep and huge arguments of %s with a sentence, and takes large ones", async (_, ptc) => {
    const text = program(`
def nested(depth): return "[" * depth + "]" * depth
refused = {}
for what in [nested(64), nested(3_000), nested(10_000), nested(100_000), "[" * 100_000, "[" + "0," * 240_000 + "0]", "[" + "0," * 1_000_000 + "0]"]:
    status, _, text = Connection().send(request('{"tool_name":"add","input":{"a":' + what + "}}")).read()
    refused[text] = refused.get(text, 0) + status
print(refused, flush=True)
large = issue("add", a=[0] * 65_000)
call("add")
print(len(large.read()[2]))`);
    const one = await system.execution();
    const paused = pausedOf(await system.start(one, text, { ptc }));
    expect(paused.stdout).toContain(
      `nested deeper than 64 levels: flatten them, or pass them as JSON text": ${5 * 413}`.replace('"', "'"),
    );
    expect(paused.stdout).toContain(
      `more than 200000 values: make several calls, or pass them as JSON text': 413`,
    );
    expect(paused.stdout).toContain("the arguments are too large': 413");
    expect(await system.discard(one.id)).toBe(204);
    expect(await system.health()).toMatchObject({ status: "healthy" });
  });

  it("tells a program that its arguments are too large, with and without an announced length", async () => {
    const lines = await linesOf(`
big = json.dumps({"tool_name": "add", "input": {"a": "x" * (1 << 20)}}).encode()
print(Connection().send(request(big)).read()[0])
print(Connection().send(request(b" " * (4 << 20))).read()[0])
c = Connection().send(b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
for _ in range(20):
    c.send(b"10000\\r\\n" + b"x" * 65536 + b"\\r\\n")
print(c.send(b"0\\r\\n\\r\\n").read()[0])
try:
    c = Connection()
    c.send(b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 99999999999\\r\\n\\r\\n")
    while True: c.send(b"x" * 65536)
except OSError as error:
    print("cut off")
try:
    print(Connection().send(b"POST /tool-call HTTP/1.1\\r\\n" + b"X: " + b"y" * 100000).read()[0])
except OSError as error:
    print("cut off")`);
    expect(lines.slice(0, 4)).toEqual(["413", "413", "413", "cut off"]);
    expect(["0", "cut off"]).toContain(lines[4]);
  });

  it("takes one request per connection, and ends a pipelined one", async () => {
    const one = await system.execution();
    const text = program(`
each = request('{"tool_name":"add","input":{}}')
try:
    print(Connection().send(each + each).read()[0])
except OSError:
    print("cut off")
print(call("add", a=2))`);
    let round = okOf(await system.start(one, text));
    const asked: string[] = [];
    for (let number = 2; "paused" in round; number++) {
      asked.push(...round.pending_call_ids);
      await system.answer(
        one,
        round.pending_call_ids.map((call_id) => ({ call_id, result: 0 })),
      );
      round = okOf(await system.resume(one, number, round.pending_call_ids));
    }
    expect(round.tool_calls_made).toBe(2);
    expect(asked).toEqual(["call_001", "call_002"]);
  });

  it("cannot be removed, replaced or added to", async () => {
    const lines = await linesOf(`
for what in [lambda: os.unlink(PATH), lambda: os.rename(PATH, PATH + "x"), lambda: open("/run/svc/mine", "w"), lambda: os.chmod(PATH, 0),
             lambda: open("/run/svc/tools.json", "w"), lambda: os.mkdir("/run/svc/d"), lambda: os.link(PATH, "/mnt/data/l")]:
    try:
        what(); print("done")
    except OSError as error: print("refused")`);
    expect(lines).toEqual(Array(7).fill("refused"));
  });
});

describe("a program that floods its tool socket", () => {
  const FLOODS: Record<string, string> = {
    "with connections that say nothing": `
held = []
for _ in range(3000):
    try: held.append(Connection())
    except OSError: pass`,
    "with half requests": `
held = []
for _ in range(3000):
    try: held.append(Connection().send(b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 10\\r\\n\\r\\n{"))
    except OSError: pass`,
    "with connections that it closes at once": `
end = time.time() + 2
while time.time() < end:
    try: Connection().send(request('{"tool_name":"add"')).s.close()
    except OSError: pass`,
    "with large requests that never end": `
def pour():
    c = Connection()
    c.send(b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1048576\\r\\n\\r\\n")
    try: c.send(b"x" * 1048575); time.sleep(2)
    except OSError: pass
threads = [threading.Thread(target=pour) for _ in range(100)]
for t in threads: t.start()
for t in threads: t.join()`,
  };

  it.each(Object.entries(FLOODS))("%s is not noticed by others", async (_name, flood) => {
    const hostile = run(`import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))${flood}`);
    const { result } = await system.drive(
      program(`
total = 0
for i in range(5): total = call("add", a=total, b=i)
print(total)`),
      ({ tool_input }) => {
        const { a, b } = tool_input as { a: number; b: number };
        return a + b;
      },
    );
    expect(result.stdout).toBe("10\n");
    expect((await hostile).code).toBe(0);
    await eventually("nothing is left", async () => {
      const { running, paused } = await system.active();
      return running === 0 && paused === 0;
    });
  });

  it("with calls gets as many as it may make, and is ended", async () => {
    const ended = await run(`
held = []
while True: held.append(issue("add", n=len(held)))`);
    expect(ended.programmatic_fault).toEqual({ type: "tool_limit" });
    expect(ended.tool_calls_made).toBe(200);
  });

  it("with large calls is told to wait: only so many are held for it", async () => {
    const one = await system.execution();
    const text = program(`
pad = "x" * 1000000
held = [issue("add", n=n, pad=pad) for n in range(24)]
codes = [c.read()[0] for c in held]
print(len(codes), sorted(set(codes)))`);
    let round = okOf(await system.start(one, text));
    for (let number = 2; "paused" in round; number++) {
      expect(round.pending_call_ids.length).toBeLessThanOrEqual(16);
      await system.answer(
        one,
        round.pending_call_ids.map((call_id) => ({ call_id, result: 1 })),
      );
      round = okOf(await system.resume(one, number, round.pending_call_ids));
    }
    expect(["24 [200, 503]\n", "24 [200]\n"]).toContain(round.stdout);
  });
});
