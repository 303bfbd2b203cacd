import { type ExecuteResponse, type JobFile, newId, type RunnerFile } from "@svc/contracts";
import { jobOf } from "@svc/test-kit/components/messages";
import { publicAnswer, publicFiles } from "@svc/worker/round/answer";
import { describe, expect, it } from "vitest";

const fileOf = (name: string, change: Partial<JobFile> = {}): JobFile => ({
  id: newId(),
  storage_session_id: newId(),
  name,
  kind: "user",
  ...change,
});
const stated = (name: string, change: Partial<RunnerFile> = {}): RunnerFile => ({
  id: newId(),
  storage_session_id: "sealed-handle",
  name,
  size: 7,
  content_type: "image/png",
  ...change,
});

describe("publicFiles", () => {
  it("a new file is the caller's own, in the session of the outputs", () => {
    const job = jobOf();
    const made = stated("out.png");
    expect(publicFiles(job, [made])).toEqual([
      {
        id: made.id,
        name: "out.png",
        storage_session_id: job.session_id,
        kind: "user",
        resource_id: "alice",
        size: 7,
        content_type: "image/png",
      },
    ]);
  });

  it.each([
    { id: "" },
    { id: "../../files/x" },
    { id: `${newId()}/..` },
    { id: "sealed-handle" },
    { name: "../out" },
    { name: "/etc/passwd" },
    { name: "a\0b" },
    { name: "" },
  ])("a new file of the form %j is none: the run failed", (change) => {
    const check = () => publicFiles(jobOf(), [stated("fine.txt"), stated("out.txt", change)]);
    expect(check).toThrow(expect.objectContaining({ code: "sandbox_execution_failed" }));
  });

  it("a new file without its size or media type is none: the run failed", () => {
    const { size: _s, ...sizeless } = stated("a");
    const { content_type: _c, ...typeless } = stated("a");
    for (const file of [sizeless, typeless]) {
      expect(() => publicFiles(jobOf(), [file])).toThrow(
        expect.objectContaining({ code: "sandbox_execution_failed" }),
      );
    }
  });

  it("an inherited file is what the caller sent, whatever the runner says of it", () => {
    const own = { resource_id: "s1", version: 3, entity_id: "e", size: 3, content_type: "text/x-python" };
    const skill = fileOf("tool.py", { kind: "skill", ...own });
    const lies = { id: newId(), storage_session_id: newId(), inherited: true, entity_id: "forged" };
    expect(publicFiles(jobOf({ files: [skill] }), [stated("tool.py", lies)])).toEqual([
      { ...skill, inherited: true },
    ]);
  });

  it("nothing is made up for an inherited file", () => {
    const plain = fileOf("a");
    const [shown] = publicFiles(jobOf({ files: [plain] }), [stated("a", { inherited: true })]);
    expect(shown).not.toHaveProperty("resource_id");
    expect(shown).not.toHaveProperty("version");
    expect(shown).not.toHaveProperty("entity_id");
  });

  it("a changed file says which of the caller's files it was, not what the runner says", () => {
    const agent = fileOf("data.csv", { kind: "agent", resource_id: "a1" });
    const job = jobOf({ files: [agent] });
    const changed = stated("data.csv", { modified_from: { id: newId(), storage_session_id: "forged" } });
    expect(publicFiles(job, [changed])).toEqual([
      {
        id: changed.id,
        name: "data.csv",
        storage_session_id: job.session_id,
        kind: "user",
        resource_id: "alice",
        modified_from: { id: agent.id, storage_session_id: agent.storage_session_id },
        size: 7,
        content_type: "image/png",
      },
    ]);
  });

  it("a file that the caller never sent is neither inherited nor changed", () => {
    const forged = [
      stated("foreign", { inherited: true }),
      stated("other", { modified_from: { id: newId(), storage_session_id: newId() } }),
    ];
    const shown = publicFiles(jobOf({ files: [fileOf("mine")] }), forged);
    expect(shown).toHaveLength(1);
    expect(shown[0]).toMatchObject({ name: "other" });
    expect(shown[0]).not.toHaveProperty("modified_from");
  });

  it("new files come first in the runner's order, then inherited ones in the request's", () => {
    const job = jobOf({ files: [fileOf("z"), fileOf("a"), fileOf("m")] });
    const listed = [
      stated("b"),
      stated("c"),
      stated("a", { inherited: true }),
      stated("m", { inherited: true }),
      stated("z", { inherited: true }),
    ];
    expect(publicFiles(job, listed).map(({ name }) => name)).toEqual(["b", "c", "z", "a", "m"]);
  });

  it("a file that is stated twice as inherited is shown once", () => {
    const job = jobOf({ files: [fileOf("a")] });
    expect(
      publicFiles(job, [stated("a", { inherited: true }), stated("a", { inherited: true })]),
    ).toHaveLength(1);
  });
});

describe("publicAnswer", () => {
  const response: ExecuteResponse = {
    session_id: "random-label",
    stdout: "out",
    stderr: "err",
    files: [],
    code: 0,
    signal: null,
    message: null,
    status: null,
    wall_time: 12,
    cpu_time: 10,
    memory: 1000,
    language: "python",
    version: "3.11.2",
    limits: { run_timeout_ms: 1000, memory_bytes: 512 },
    timings: { setup_ms: 1, run_ms: 2, collect_ms: 3 },
    session_state_persisted: false,
    session_state_restore_failed: false,
  };

  it("has the execution's own session, the time in the queue, and nothing of sessions that do not persist", () => {
    const job = jobOf();
    expect(publicAnswer(job, response, 4.56789)).toEqual({
      session_id: job.session_id,
      stdout: "out",
      stderr: "err",
      files: [],
      code: 0,
      signal: null,
      message: null,
      status: null,
      wall_time: 12,
      cpu_time: 10,
      memory: 1000,
      language: "python",
      version: "3.11.2",
      limits: { run_timeout_ms: 1000, memory_bytes: 512 },
      timings: { queue_ms: 4.568, setup_ms: 1, run_ms: 2, collect_ms: 3 },
    });
  });

  it("passes on what was deleted, omitted or not delivered", () => {
    const told = {
      deleted_files: ["a"],
      files_omitted: [{ name: "b", reason: "size" as const }],
      files_omitted_count: 1,
    };
    expect(publicAnswer(jobOf(), { ...response, ...told }, 0)).toMatchObject(told);
  });
});

describe("a pause", () => {
  it("is answered as it is, in the caller's own session, with the time in the queue", () => {
    const job = jobOf();
    const paused = {
      paused: true as const,
      session_id: "label",
      pending_call_ids: ["call_001"],
      stdout: "so far",
      stderr: "",
      execution_time: 3,
      tool_calls_made: 1,
      runner_url: "http://runner:2000",
      language: "python",
      version: "3.11.2",
      limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
    };
    expect(publicAnswer(job, paused, 5)).toEqual({
      ...paused,
      session_id: job.session_id,
      timings: { queue_ms: 5 },
    });
  });
});
