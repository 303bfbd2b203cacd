/**
 * Persistent sessions as a caller sees them: which session a run continues, and that an answer says truly what became of the state.
 * Notebooks of ten steps are in sessions-fleet.test.ts.
 */
import type { ExecResponse } from "@svc/contracts";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let system: Service;
let api: Api;
beforeAll(async () => {
  system = await startService({ SVC_PERSIST_SESSIONS: "true", ...OPEN_LIMITS });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

let made = 0;
/** A session of its own: each call is its next run, which must end well and be kept. */
function notebook() {
  const runtime_session_hint = `notebook-${++made}`;
  const run = (lang: string, code: string, more: ExecInput = {}) =>
    api.exec({ lang, code, runtime_session_hint, ...more });
  const kept = async (lang: string, code: string, more: ExecInput = {}) => {
    const answer = await run(lang, code, more);
    expect(answer).toMatchObject({
      code: 0,
      session_state_persisted: true,
      session_state_restore_failed: false,
    });
    expect(answer.session_state_conflict).toBeUndefined();
    return answer;
  };
  return { run, kept, out: async (lang: string, code: string) => (await kept(lang, code)).stdout };
}
const namesOf = ({ files }: ExecResponse) => files.map(({ name }) => name);

describe("which session a run continues", () => {
  test("that of its hint, else that of an earlier execution, else the default one", async () => {
    const hinted = await api.exec({
      lang: "bash",
      code: "echo hinted > where",
      runtime_session_hint: "which:1",
    });
    const plain = await api.exec({ lang: "bash", code: "echo default > where" });
    const where = async (more: ExecInput) =>
      (await api.exec({ lang: "bash", code: "cat where", ...more })).stdout;
    expect(await where({})).toBe("default\n");
    expect(await where({ runtime_session_hint: "which:1" })).toBe("hinted\n");
    expect(await where({ session_id: hinted.session_id })).toBe("hinted\n");
    expect(await where({ session_id: plain.session_id })).toBe("default\n");
    for (const session_id of ["x", "a".repeat(21), 7, null, { a: 1 }])
      expect(await where({ session_id })).toBe("default\n");
    expect(await where({ session_id: plain.session_id, runtime_session_hint: "which:1" })).toBe("hinted\n");
  });

  test.each(["", "x".repeat(129), "a b", "ä", "a/b", 7, {}])(
    "a hint that is none is refused: %j",
    async (hint) => {
      const refused = await api.tryExec({ lang: "bash", code: "true", runtime_session_hint: hint });
      expect([refused.status, refused.refusal]).toMatchObject([
        400,
        { error: "invalid_request", details: [{ path: "runtime_session_hint" }] },
      ]);
    },
  );

  test("programs with tools begin with nothing and leave nothing", async () => {
    await api.exec({ lang: "py", code: "open('f', 'w').write('1')" });
    const code = "import os\nprint(os.listdir('.'))\nopen('g', 'w').write('1')";
    const answer = await api.post("/exec/programmatic", { lang: "py", code, tools: [] });
    expect(answer.ok<ExecResponse>().stdout).toBe("['main.py']\n");
    expect((await api.exec({ lang: "bash", code: "ls" })).stdout).not.toContain("g");
  });
});

describe("what callers see of the files of a session", () => {
  test("new and changed files are outputs; what was restored and is the same is not", async () => {
    const { kept } = notebook();
    expect(namesOf(await kept("bash", "echo 1 > a; echo 1 > b; mkdir d; mkdir .h; echo 1 > .h/x"))).toEqual([
      "a",
      "b",
      "d/.dirkeep",
    ]);
    expect(namesOf(await kept("bash", "true"))).toEqual([]);
    const third = await kept("bash", "echo 2 > a; rm b; mv d e; chmod 600 .h/x");
    expect(namesOf(third)).toEqual(["a", "e/.dirkeep"]);
    expect(third.files[0]).not.toHaveProperty("modified_from");
    expect(third).not.toHaveProperty("deleted_files");
    expect(third).not.toHaveProperty("files_omitted");
  });

  test("files of a request go before restored ones, and an unchanged one is inherited", async () => {
    const { kept, run } = notebook();
    await kept("bash", "echo old > a; mkdir d; echo old > d/x; echo old > 'script.sh.bak'");
    const [file] = await api.upload({ a: "new" });
    const ref = { id: file?.id, storage_session_id: file?.storage_session_id, name: "a" };
    const answer = await run("bash", "cat a d; ls", { files: [ref, { name: "d", content: "file" }] });
    expect(answer.stdout).toBe("newfilea\nd\nscript.sh\nscript.sh.bak\n");
    expect(answer.files).toMatchObject([{ name: "a", inherited: true }]);
    expect((await kept("bash", "cat a d")).stdout).toBe("newfile");
  });

  test("a directory of the session may be one of the request, and of the files that it names", async () => {
    const { kept } = notebook();
    const { files, session_id } = await kept("bash", "mkdir charts; echo 1 > a.csv");
    expect(files.map(({ name }) => name)).toEqual(["a.csv", "charts/.dirkeep"]);
    const refs = files.map(({ id, name }) => ({ id, name, storage_session_id: session_id }));
    for (const named of [refs.slice(0, 1), refs, [{ name: "charts/.dirkeep", content: "" }]]) {
      const answer = await kept("bash", "ls -d charts; cat a.csv", { files: named });
      expect(answer.stdout).toBe("charts\n1\n");
      expect(answer.files.every(({ inherited }) => inherited)).toBe(true);
    }
  });

  test("the names of the service are refused, and never come back", async () => {
    for (const name of ["session-workspace.tar", "x/.session_state.pkl", ".session_state.last/y"]) {
      const refused = await api.tryExec({ lang: "bash", code: "true", files: [{ name, content: "" }] });
      expect([refused.status, refused.refusal]).toMatchObject([
        400,
        { error: "reserved_file_name", details: [{ path: "files[0].name" }] },
      ]);
    }
    const { kept } = notebook();
    const answer = await kept(
      "bash",
      "echo 1 > session-workspace.tar; echo 2 > .session_state.pkl; echo 4 > .session_state.new; echo 3 > x",
    );
    expect(namesOf(answer)).toEqual(["x"]);
    expect((await kept("bash", "ls -A")).stdout).toBe(".session_state.pkl\nscript.sh\nx\n");
  });
});

describe("a run is kept", () => {
  test.each([
    ["py", "open('f','w').write('1'); raise SystemExit(3)", { code: 3 }],
    ["py", "open('f','w').write('1'); 1/0", { code: 1 }],
    ["bash", "echo 1 > f; kill -9 $$", { status: "SG" }],
    ["py", "import os; open('f','w').write('1'); os._exit(7)", { code: 7 }],
  ])("whatever its exit code or signal: %s %s", async (lang, code, end) => {
    const { run, out } = notebook();
    expect(await run(lang, code)).toMatchObject({ ...end, session_state_persisted: true });
    expect(await out("bash", "ls f")).toBe("f\n");
  });

  test.each([
    ["bash", "echo 2 > f; sleep 60", { run_timeout: 300 }, "TO"],
    ["py", "open('f','w').write('2'); x = bytearray(2 << 30)", {}, "ML"],
    ["bash", "echo 2 > f; yes", {}, "OL"],
  ])("but not after a kill by a limit: %s %s", async (lang, code, more, status) => {
    const { run, out } = notebook();
    await out("bash", "echo 1 > f");
    const answer = await run(lang, code, more);
    expect(answer).toMatchObject({
      status,
      session_state_persisted: false,
      session_state_restore_failed: false,
    });
    expect(await out("bash", "cat f")).toBe("1\n");
  });

  test("with the variables of the run before when it ends without saving its own, and says so", async () => {
    const { run, out } = notebook();
    await out("py", "x = 1");
    const answer = await run("py", "x = 2\nimport os; os._exit(0)");
    expect(answer.stderr).toBe("[sandbox] Variables of this run not kept: it ended before they were saved\n");
    expect(await out("py", "print(x)")).toBe("1\n");
  });

  test("without the variables that cannot be, which are named", async () => {
    const { kept, out } = notebook();
    const answer = await kept("py", "x = 1\nf = open('/dev/null')\ng = (i for i in [])");
    expect(answer.session_state_dropped?.map(({ name }) => name)).toEqual(["f", "g"]);
    expect(answer.stderr).toMatch(
      /^\[sandbox\] Variables not kept: f \(cannot pickle .*\), g \(cannot pickle .*\)\n$/,
    );
    expect(await out("py", "print(x, 'f' in globals())")).toBe("1 False\n");
  });

  test("up to its size, and beyond that the state before stays", async () => {
    const { run, out } = notebook();
    await out("bash", "echo 1 > f");
    const large = await run(
      "bash",
      "echo 2 > f; head -c 60000000 /dev/zero > a; head -c 60000000 /dev/zero > b",
    );
    expect(large).toMatchObject({ code: 0, session_state_persisted: false });
    expect(large.stderr).toContain(
      "[sandbox] Session not saved: its files have 120,000,002 bytes, at most 100 MiB\n",
    );
    expect(await out("bash", "cat f; ls")).toBe("1\nf\nscript.sh\n");
  });
});

describe("a caller's sessions", () => {
  interface Listed {
    sessions: {
      id: string;
      hint?: string;
      size: number;
      created_at: string;
      last_used_at: string;
      expires_at: string;
      language_last: string;
    }[];
  }
  const list = async () => (await api.send("GET", "/sessions")).ok<Listed>().sessions;

  test("are listed, the last used first, with the files of each", async () => {
    const { kept } = notebook();
    const hint = `notebook-${made}`;
    const { session_id } = await kept(
      "bash",
      "mkdir -p d .h; echo 12345 > d/f; echo 1 > .h/x; chmod 640 d/f; ln -s f d/l",
    );
    await kept("py", "x = 1");
    const [first] = await list();
    expect(first).toMatchObject({ hint, language_last: "python", id: expect.stringMatching(/^[\w-]{21}$/) });
    expect(first?.size).toBeGreaterThan(0);
    const times = [first?.created_at, first?.last_used_at, first?.expires_at].map((time) =>
      Date.parse(time ?? ""),
    );
    expect(times).toEqual(times.toSorted());
    expect((await api.send("GET", `/sessions/${first?.id}/files`)).ok()).toEqual({
      files: [
        { name: ".h/x", size: 2, mode: 0o644 },
        { name: "d/f", size: 6, mode: 0o640 },
      ],
    });
    const bytesOf = (name: string) =>
      api.send("GET", `/sessions/${first?.id}/file?name=${encodeURIComponent(name)}`);
    expect((await bytesOf("d/f")).text).toBe("12345\n");
    for (const name of ["d", "d/l", "../d/f", ".session_state.pkl"])
      expect((await bytesOf(name)).status, name).toBe(404);
    // The snapshot itself is no file of the caller.
    const files = await api.send("GET", `/files/${session_id}?detail=normalized`);
    expect(files.ok<{ name: string }[]>().map(({ name }) => name)).toEqual(["d/f"]);
  });

  test("are deleted, and then begin anew", async () => {
    const { kept, out } = notebook();
    const hint = `notebook-${made}`;
    await kept("bash", "echo 1 > f");
    const id = (await list()).find((session) => session.hint === hint)?.id ?? "";
    expect((await api.send("DELETE", `/sessions/${id}`)).status).toBe(204);
    expect((await list()).some((session) => session.hint === hint)).toBe(false);
    for (const [method, path] of [
      ["DELETE", ""],
      ["GET", "/files"],
      ["GET", "/file?name=f"],
    ] as const) {
      const refused = await api.send(method, `/sessions/${id}${path}`);
      expect([refused.status, refused.refusal.error]).toEqual([404, "file_not_found"]);
    }
    expect(await out("bash", "ls")).toBe("script.sh\n");
  });

  test("that are deleted during a run are not brought back by it", async () => {
    const { kept, run, out } = notebook();
    const hint = `notebook-${made}`;
    await kept("bash", "echo 1 > f");
    const id = (await list()).find((session) => session.hint === hint)?.id ?? "";
    const going = run("bash", "echo 2 > f; sleep 1; cat f");
    await expect
      .poll(async () => (await list()).find((session) => session.hint === hint)?.last_used_at)
      .toBeDefined();
    await expect
      .poll(async () => (await api.send("GET", "/sessions")).ok<Listed>().sessions.length)
      .toBeGreaterThan(0);
    expect((await api.send("DELETE", `/sessions/${id}`)).status).toBe(204);
    const answer = await going;
    // The run may have begun after the deletion; then it is the first of a new session.
    if (answer.session_state_persisted === false) expect(answer.session_state_conflict).toBeUndefined();
    else expect(await out("bash", "cat f")).toBe("2\n");
  });
});
