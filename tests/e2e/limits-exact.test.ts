/**
 * Every limit of a run from both sides: what stays within it notices nothing, what passes it ends or fails as documented, and
 * the answer says which limit it was. The limits are the operator's, for one language each; requests only lower them.
 */
import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const MIB = 2 ** 20;
const PAGE = 4096;
const MEMORY = 128 * MIB;
const CPU_MS = slow(1000);
const PROCESSES = 20;
const OPEN_FILES = 64;
const FILE_BYTES = 1_000_000;
const OUTPUT = 1000;
const KILL_FACTOR = 4;
const WORKSPACE = 8 * MIB;
const FILES = 200;
const SHORT_MS = 1500;

let system: Service;
let api: Api;
beforeAll(async () => {
  const overrides = {
    "*": { run_cpu_time: CPU_MS },
    python: {
      run_memory_limit: MEMORY,
      max_process_count: PROCESSES,
      max_open_files: OPEN_FILES,
      max_file_size: FILE_BYTES,
      output_max_size: OUTPUT,
    },
    javascript: { run_timeout: SHORT_MS, run_cpu_time: 60_000 },
  };
  system = await startService({
    ...OPEN_LIMITS,
    SANDBOX_LIMIT_OVERRIDES: JSON.stringify(overrides),
    SANDBOX_OUTPUT_KILL_FACTOR: String(KILL_FACTOR),
    SANDBOX_WORKSPACE_MAX_BYTES: String(WORKSPACE),
    SANDBOX_WORKSPACE_MAX_FILES: String(FILES),
  });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const commas = (count: number) => count.toLocaleString("en-US");
const KILLED = { code: 137, signal: "SIGKILL" };
const UNLIMITED = { status: null, code: 0, signal: null, message: null, stderr: "" };
const python = (code: string, more: object = {}) => api.exec({ lang: "py", code, ...more });
const bash = (code: string) => api.exec({ lang: "bash", code });

function unlimited(answer: ExecResponse, stdout = "") {
  expect(answer).toMatchObject({ ...UNLIMITED, stdout });
  expect(answer).not.toHaveProperty("limits_reached");
}

describe("limits that end a run", () => {
  test("wall time: not before the limit", async () => {
    unlimited(await python("import time; time.sleep(0.5); print('done')", { run_timeout: 20_000 }), "done\n");
    const answer = await python("import time; time.sleep(60)", { run_timeout: 1000 });
    const message = "Time limit exceeded";
    expect(answer).toMatchObject({
      ...KILLED,
      status: "TO",
      message,
      stderr: `[sandbox] ${message} (1 s)\n`,
    });
    expect(answer.wall_time).toBeGreaterThanOrEqual(1000);
    expect(answer.wall_time).toBeLessThan(20_000);
    expect(answer.cpu_time).toBeLessThan(CPU_MS);
  });

  test("wall time of a language: a request lowers it and cannot raise it", async () => {
    const code = "setTimeout(() => {}, 60_000)";
    for (const run_timeout of [500, 50_000, undefined]) {
      const answer = await api.exec({ lang: "js", code, ...(run_timeout && { run_timeout }) });
      const limit = Math.min(run_timeout ?? SHORT_MS, SHORT_MS);
      expect(answer.status).toBe("TO");
      expect(answer.wall_time).toBeGreaterThanOrEqual(limit);
      expect(answer.wall_time).toBeLessThan(limit + 15_000);
    }
  });

  test("CPU time: of all processes together, and of nothing else", async () => {
    const burn = (seconds: number) => `
import os, time
for _ in range(2):
    if os.fork() == 0:
        while time.process_time() < ${seconds}: pass
        os._exit(0)
for _ in range(2): os.wait()
print("done")`;
    unlimited(await python(burn(0.2)), "done\n");
    const answer = await python(burn(60));
    const message = "CPU time limit exceeded";
    const stderr = `[sandbox] ${message} (${CPU_MS / 1000} s)\n`;
    expect(answer).toMatchObject({ ...KILLED, status: "TO", message, stderr });
    expect(answer.cpu_time).toBeGreaterThanOrEqual(CPU_MS);
    expect(answer.cpu_time).toBeLessThan(CPU_MS + slow(2000));
    expect((await bash("while :; do :; done")).message).toBe(message);
  });

  test("memory: the peak is told, and passing the limit ends everything", async () => {
    const take = (mib: number) => `import time; x = b"1" * (${mib} << 20); time.sleep(0.3); print("done")`;
    const within = await python(take(100));
    unlimited(within, "done\n");
    expect(within.memory).toBeGreaterThan(100 * MIB);
    expect(within.memory).toBeLessThan(MEMORY);
    const answer = await python(`${take(140)}; time.sleep(60)`);
    const message = "Out of memory";
    const stderr = `[sandbox] ${message} (limit ${MEMORY / MIB} MiB)\n`;
    expect(answer).toMatchObject({ ...KILLED, status: "ML", message, stderr });
    expect(answer.memory).toBeGreaterThan(MEMORY);
  });

  test.each([
    [1, "OL", "stdout"],
    [2, "EL", "stderr"],
  ] as const)(
    "output on descriptor %i: kept to the byte, and ended at its multiple",
    async (fd, status, name) => {
      const write = (bytes: number, end = "") =>
        python(`import os, time\nos.write(${fd}, b"x" * ${bytes})\n${end}`);
      const prefix = "x".repeat(OUTPUT);
      const message = `${name} length exceeded`;
      expect(await write(OUTPUT)).toMatchObject({ status: null, code: 0, message: null, [name]: prefix });
      for (const bytes of [OUTPUT + 1, OUTPUT * KILL_FACTOR]) {
        const answer = await write(bytes, "time.sleep(0.2); exit(3)");
        expect(answer).toMatchObject({ status, code: 3, signal: null, message });
        expect(answer[name].startsWith(prefix)).toBe(true);
        const kept = `${commas(OUTPUT)} bytes kept of ${commas(bytes)} bytes`;
        const note = `[sandbox] ${message} (${kept}; write large results to a file)\n`;
        expect(answer.stderr.endsWith(note)).toBe(true);
      }
      const killed = await write(OUTPUT * KILL_FACTOR + 1, "time.sleep(60)");
      expect(killed).toMatchObject({ ...KILLED, status, message });
    },
  );
});

describe("limits that a program meets", () => {
  const met = (answer: ExecResponse, limit: string, value: number, note: string) => {
    expect(answer).toMatchObject({ status: null, message: null, limits_reached: [{ limit, value }] });
    expect(answer.stderr.endsWith(`[sandbox] ${note}\n`)).toBe(true);
  };

  test("processes and threads", async () => {
    const threads = (count: number) => `
import os, threading, time
try:
    for n in range(${count}): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError as error: print(error)
print(n, flush=True)
os._exit(0)`;
    unlimited(await python(threads(PROCESSES - 1)), `${PROCESSES - 2}\n`);
    const answer = await python(threads(PROCESSES));
    expect(answer).toMatchObject({ code: 0, stdout: `can't start new thread\n${PROCESSES - 1}\n` });
    met(answer, "processes", PROCESSES, `Process limit reached (${PROCESSES} processes and threads)`);
  });

  test("open files: an ordinary error, which cannot be seen from outside", async () => {
    const open = (count: number) => `
import os, errno
try:
    for n in range(${count}): last = os.open("/dev/null", os.O_RDONLY)
except OSError as error: print(errno.errorcode[error.errno])
print(last)`;
    unlimited(await python(open(OPEN_FILES - 3)), `${OPEN_FILES - 1}\n`);
    unlimited(await python(open(OPEN_FILES - 2)), `EMFILE\n${OPEN_FILES - 1}\n`);
  });

  test("size of a file", async () => {
    const write = (bytes: number) => `
import errno, os
try:
    with open("f", "wb", 0) as file:
        for n in range(0, ${bytes}, 1000): file.write(b"x" * min(1000, ${bytes} - n))
except OSError as error: print(errno.errorcode[error.errno])
print(os.path.getsize("f"))`;
    unlimited(await python(write(FILE_BYTES - 1)), `${FILE_BYTES - 1}\n`);
    const answer = await python(write(FILE_BYTES + 1));
    expect(answer).toMatchObject({ code: 0, stdout: `EFBIG\n${FILE_BYTES}\n` });
    met(answer, "file_size", FILE_BYTES, `File size limit reached (${commas(FILE_BYTES)} bytes)`);
  });

  test("bytes of the workspace", async () => {
    // The program itself takes a page.
    const fill = (bytes: number) => `mkdir .d && head -c ${bytes} /dev/zero > .d/f || exit 7`;
    unlimited(await bash(fill(WORKSPACE - 2 * PAGE)));
    const answer = await bash(fill(WORKSPACE));
    expect(answer).toMatchObject({ code: 7, stderr: expect.stringContaining("No space left on device") });
    met(answer, "workspace_bytes", WORKSPACE, `Workspace full (${WORKSPACE / MIB} MiB)`);
  });

  test("files of the workspace", async () => {
    // Its root, the program and the directory are files too.
    const make = (count: number) => `mkdir .d && cd .d && seq ${count} | xargs touch || exit 7`;
    unlimited(await bash(make(FILES - 4)));
    const answer = await bash(make(FILES - 2));
    expect(answer).toMatchObject({ code: 7, stderr: expect.stringContaining("No space left on device") });
    met(answer, "workspace_files", FILES, `Workspace full (${FILES} files)`);
  });

  test("several at once are all named, before what ended the run", async () => {
    const code = "head -c 9M /dev/zero > /mnt/data/f 2>/dev/null; while :; do :; done";
    const answer = await bash(code);
    expect(answer).toMatchObject({
      status: "TO",
      limits_reached: [{ limit: "workspace_bytes", value: WORKSPACE }],
    });
    const notes = [`Workspace full (${WORKSPACE / MIB} MiB)`, `CPU time limit exceeded (${CPU_MS / 1000} s)`];
    expect(answer.stderr).toBe(notes.map((note) => `[sandbox] ${note}\n`).join(""));
  });
});
