/** Parts that several examples of the document share. */

export interface Example {
  /** What this example shows, in one line. */
  summary: string;
  value: unknown;
}

export interface Examples {
  request?: Readonly<Record<string, Example>>;
  /** By status and media type. */
  answers?: Readonly<Record<number, Readonly<Record<string, Readonly<Record<string, Example>>>>>>;
}

export const FILE = "V1StGXR8_Z5jdHi6B-myT";
export const SESSION = "kd83HtQmZ0_4vYcPa7-Rn";
export const TOKEN = "svc1.opaque";
export const LIMITS = { run_timeout_ms: 60_000, memory_bytes: 536_870_912 };
export const STORED_AT = "2026-01-31T10:00:00.000Z";

export const json = (status: number, examples: Readonly<Record<string, Example>>) => ({
  [status]: { "application/json": examples },
});

export const uploaded = {
  status: "success",
  name: "data/points.csv",
  filename: "data/points.csv",
  id: FILE,
  fileId: FILE,
  storage_session_id: SESSION,
  size: 8,
  lastModified: STORED_AT,
  etag: "0cc175b9c0f1b6a8",
  contentType: "text/csv",
  metadata: { "content-type": "text/csv", "original-filename": "data/points.csv" },
};

export const form = {
  own: { summary: "A file of the caller", value: { file: ["x,y\n1,2\n"] } },
  skill: {
    summary: "Files of a skill that no program may change",
    value: { file: ["x,y\n1,2\n"], kind: "skill", id: "charts", version: "1", read_only: "true" },
  },
};

export const noneStored = (status: number, error: string, message: string) =>
  json(status, {
    upload_failed: {
      summary: "No file could be stored",
      value: {
        message: "error",
        error: "upload_failed",
        request_id: "req-7f3a",
        storage_session_id: SESSION,
        files: [{ status: "error", filename: "points.csv", error, message }],
        succeeded: 0,
        failed: 1,
        details: `No file could be stored. ${message}`,
      },
    },
  });

export const executed = {
  session_id: SESSION,
  stdout: "42\n",
  stderr: "",
  files: [],
  code: 0,
  signal: null,
  message: null,
  status: null,
  wall_time: 21.7,
  cpu_time: 17.3,
  memory: 9_437_184,
  language: "python",
  version: "3.13.5",
  limits: LIMITS,
  timings: { queue_ms: 1.2, setup_ms: 6.4, run_ms: 21.7, collect_ms: 0.9 },
};

export const output = {
  id: FILE,
  name: "plot_1.png",
  storage_session_id: SESSION,
  kind: "user",
  resource_id: "user-42",
  size: 15_203,
  content_type: "image/png",
};

export const ended = {
  session_id: SESSION,
  tool_calls_made: 1,
  execution_time: 31.4,
  stdout: "{'celsius': 4}\n",
  stderr: "",
  files: [],
  code: 0,
  signal: null,
  sandbox_status: null,
  limits: LIMITS,
};

/** An answer as an event stream. */
export const events = (result: { stdout: string; status?: string | null }) => ({
  "text/event-stream": {
    events: {
      summary: "The same as events",
      value: [
        ["started", { session_id: SESSION, language: "python", version: "3.13.5" }],
        ["stdout", { text: result.stdout }],
        ["result", result],
      ]
        .map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
        .join(""),
    },
  },
});

export const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

export const checked = { ok: true, ms: 0.4 };
export const CANARIES = { python: STORED_AT, other: STORED_AT };
