/** Whole requests and answers for the document. Tests hold each against its schema, and send the requests. */

export interface Example {
  /** What is special about it, in a line. */
  summary: string;
  value: unknown;
}

interface Examples {
  request?: Readonly<Record<string, Example>>;
  /** By status and media type. */
  answers?: Readonly<Record<number, Readonly<Record<string, Readonly<Record<string, Example>>>>>>;
}

const FILE = "V1StGXR8_Z5jdHi6B-myT";
const SESSION = "kd83HtQmZ0_4vYcPa7-Rn";
const TOKEN = "svc1.opaque";
const LIMITS = { run_timeout_ms: 60_000, memory_bytes: 536_870_912 };
const STORED_AT = "2026-01-31T10:00:00.000Z";

const json = (status: number, examples: Readonly<Record<string, Example>>) => ({
  [status]: { "application/json": examples },
});

const uploaded = {
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

const form = {
  own: { summary: "A file of the caller", value: { file: ["x,y\n1,2\n"] } },
  skill: {
    summary: "Files of a skill that no program may change",
    value: { file: ["x,y\n1,2\n"], kind: "skill", id: "charts", version: "1", read_only: "true" },
  },
};

const noneStored = (status: number, error: string, message: string) =>
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

const executed = {
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

const output = {
  id: FILE,
  name: "plot_1.png",
  storage_session_id: SESSION,
  kind: "user",
  resource_id: "user-42",
  size: 15_203,
  content_type: "image/png",
};

const ended = {
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

const weather = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const checked = { ok: true, ms: 0.4 };
const CANARIES = { python: STORED_AT, other: STORED_AT };

export const EXAMPLES: Readonly<Record<string, Examples>> = {
  health: {
    answers: json(200, { alive: { summary: "Alive", value: { status: "ok", version: "0.1.0" } } }),
  },
  ready: {
    answers: {
      ...json(200, {
        ready: {
          summary: "Executions go through",
          value: { status: "ready", checks: { redis: true, file_server: true, canary: true, running: true } },
        },
      }),
      ...json(503, {
        not_ready: {
          summary: "The file server is away",
          value: {
            status: "not_ready",
            checks: { redis: true, file_server: false, canary: true, running: true },
          },
        },
      }),
    },
  },
  healthDetailed: {
    answers: {
      ...json(200, {
        ready: {
          summary: "Executions go through",
          value: {
            status: "ready",
            version: "0.1.0",
            time: STORED_AT,
            checks: {
              redis: checked,
              file_server: checked,
              canary: { ...checked, last_success: CANARIES },
              running: { ok: true },
            },
          },
        },
      }),
      ...json(503, {
        not_ready: {
          summary: "No program of the other languages went through in the last minute",
          value: {
            status: "not_ready",
            version: "0.1.0",
            time: STORED_AT,
            checks: {
              redis: checked,
              file_server: checked,
              canary: { ok: false, ms: 0.3, last_success: { ...CANARIES, other: null } },
              running: { ok: true },
            },
          },
        },
      }),
    },
  },
  upload: {
    request: form,
    answers: json(200, {
      stored: {
        summary: "One file",
        value: { message: "success", storage_session_id: SESSION, files: [uploaded] },
      },
    }),
  },
  uploadBatch: {
    request: form,
    answers: {
      ...json(200, {
        some: {
          summary: "One file was too large",
          value: {
            message: "partial_success",
            storage_session_id: SESSION,
            files: [
              uploaded,
              {
                status: "error",
                filename: "huge.bin",
                error: "file_too_large",
                message: "The file is larger than 26214400 bytes.",
              },
            ],
            succeeded: 1,
            failed: 1,
          },
        },
      }),
      ...noneStored(400, "invalid_file_name", "The file name must not hold the segment `..`."),
      ...noneStored(413, "file_too_large", "The file is larger than 26214400 bytes."),
      ...noneStored(502, "storage_unavailable", "The file storage cannot be reached."),
    },
  },
  download: {
    answers: {
      200: {
        "application/octet-stream": { whole: { summary: "The whole file", value: "x,y\n1,2\n" } },
      },
      206: { "application/octet-stream": { range: { summary: "bytes=0-2", value: "x,y" } } },
    },
  },
  fileMetadata: {
    answers: json(200, {
      file: {
        summary: "A file",
        value: {
          lastModified: STORED_AT,
          size: 8,
          etag: "0cc175b9c0f1b6a8",
          contentType: "text/csv",
          name: `${SESSION}/${FILE}`,
          originalFilename: "data/points.csv",
          id: FILE,
          storage_session_id: SESSION,
          readOnly: false,
        },
      },
    }),
  },
  listFiles: {
    answers: json(200, {
      simple: { summary: "detail=simple", value: [`${SESSION}/${FILE}`] },
      normalized: {
        summary: "detail=normalized",
        value: [
          {
            id: FILE,
            name: "data/points.csv",
            storage_session_id: SESSION,
            size: 8,
            contentType: "text/csv",
            lastModified: STORED_AT,
          },
        ],
      },
    }),
  },
  deleteFile: {
    answers: json(200, {
      deleted: {
        summary: "Deleted",
        value: { message: "File deleted successfully", session_id: SESSION, fileId: FILE },
      },
    }),
  },
  listSessions: {
    answers: json(200, {
      sessions: {
        summary: "A notebook",
        value: {
          sessions: [
            {
              id: SESSION,
              hint: "notebook-1",
              created_at: STORED_AT,
              last_used_at: STORED_AT,
              expires_at: STORED_AT,
              size: 20_480,
              language_last: "python",
            },
          ],
        },
      },
    }),
  },
  listSessionFiles: {
    answers: json(200, {
      files: {
        summary: "One file",
        value: { files: [{ name: "data/points.csv", size: 8, mode: 0o644 }] },
      },
    }),
  },
  deleteSession: {},
  exec: {
    request: {
      shortest: { summary: "A program", value: { lang: "py", code: "print(6 * 7)" } },
      inline: {
        summary: "With a file, arguments, input and a variable",
        value: {
          lang: "bash",
          code: 'wc -l < "$1"; cat; echo "$GREETING"',
          args: ["points.csv"],
          stdin: "first line\n",
          files: [{ name: "points.csv", content: "x,y\n1,2\n" }],
          env: { GREETING: "hello" },
          run_timeout: 10_000,
        },
      },
    },
    answers: json(200, {
      output: { summary: "What it printed", value: executed },
      file: { summary: "A file that it made", value: { ...executed, stdout: "", files: [output] } },
      timeout: {
        summary: "The time limit ended it",
        value: {
          ...executed,
          stdout: "",
          stderr: "[sandbox] Time limit exceeded (60 s)\n",
          code: 137,
          signal: "SIGKILL",
          message: "Time limit exceeded",
          status: "TO",
        },
      },
    }),
  },
  listLanguages: {
    answers: {
      200: {
        "application/json": {
          installed: {
            summary: "Two languages, cut short",
            value: {
              languages: [
                {
                  name: "python",
                  version: "3.13.5",
                  aliases: ["py", "python3"],
                  file_extension: "py",
                  status: "ready",
                  packages: [{ name: "numpy", version: "2.2.4" }],
                  commands: ["git", "jq"],
                  limits: {
                    ...LIMITS,
                    output_bytes: 65_536,
                    files: 50,
                    file_bytes: 10_000_000,
                    processes: 256,
                  },
                  network: false,
                },
                {
                  name: "rust",
                  version: null,
                  aliases: ["rs"],
                  file_extension: "rs",
                  status: "absent",
                  packages: [],
                  commands: [],
                  network: false,
                },
              ],
            },
          },
        },
        "text/plain": { text: { summary: "format=text", value: "Languages: python 3.13.5, bash 5.2.37\n" } },
      },
    },
  },
  openapi: {
    answers: json(200, { document: { summary: "Its beginning", value: { openapi: "3.1.0" } } }),
  },
  execProgrammatic: {
    request: {
      start: {
        summary: "Starts a program that calls a tool",
        value: { code: 'print(await get_weather(city="Oslo"))', tools: [weather] },
      },
      resume: {
        summary: "Answers its call",
        value: {
          continuation_token: TOKEN,
          tool_results: [{ call_id: "call_001", result: { celsius: 4 } }],
        },
      },
    },
    answers: json(200, {
      paused: {
        summary: "It waits for the result of its call",
        value: {
          status: "tool_call_required",
          session_id: SESSION,
          continuation_token: TOKEN,
          tool_calls: [
            { id: "call_001", name: "get_weather", arguments: { city: "Oslo" }, input: { city: "Oslo" } },
          ],
          partial_stdout: "",
          partial_stderr: "",
          tool_calls_made: 1,
          execution_time: 24.1,
          limits: LIMITS,
        },
      },
      completed: { summary: "It ended well", value: { status: "completed", ...ended } },
      error: {
        summary: "It failed",
        value: {
          status: "error",
          ...ended,
          stdout: "",
          stderr: "Traceback …\n",
          code: 1,
          error: "Sandbox exited with code 1",
          error_type: "nonzero_exit",
        },
      },
    }),
  },
  cancelProgrammatic: {
    request: { label: { summary: "By the label of a start", value: { request_id: "turn-17" } } },
    answers: json(200, {
      cancelled: { summary: "One program", value: { status: "cancelled", cancelled: 1 } },
    }),
  },
};
