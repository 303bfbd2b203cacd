/** Whole requests and answers for the document. Tests hold each against its schema, and send the requests. */
import {
  CANARIES,
  checked,
  type Examples,
  ended,
  events,
  executed,
  FILE,
  form,
  json,
  LIMITS,
  noneStored,
  output,
  SESSION,
  STORED_AT,
  TOKEN,
  uploaded,
  weather,
} from "./example-parts.ts";
import { JOB_EXAMPLES } from "./job-examples.ts";

export const EXAMPLES: Readonly<Record<string, Examples>> = {
  health: {
    answers: json(200, { alive: { summary: "Alive", value: { status: "ok", version: "0.1.0" } } }),
  },
  ready: {
    answers: {
      ...json(200, {
        ready: {
          summary: "Executions go through",
          value: {
            status: "ready",
            checks: {
              redis: true,
              clock: true,
              file_server: true,
              canary: true,
              descriptors: true,
              running: true,
            },
          },
        },
      }),
      ...json(503, {
        not_ready: {
          summary: "The file server is away",
          value: {
            status: "not_ready",
            checks: {
              redis: true,
              clock: true,
              file_server: false,
              canary: true,
              descriptors: true,
              running: true,
            },
            reasons: { file_server: "the file server is not ready: object storage is full" },
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
              clock: checked,
              file_server: checked,
              canary: { ...checked, last_success: CANARIES },
              descriptors: checked,
              running: checked,
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
              clock: checked,
              file_server: checked,
              canary: {
                ok: false,
                ms: 0.3,
                reason: "no execution went through in the last minute (other)",
                last_success: { ...CANARIES, other: null },
              },
              descriptors: checked,
              running: checked,
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
                message: "The file is larger than 25 MiB.",
              },
            ],
            succeeded: 1,
            failed: 1,
          },
        },
      }),
      ...noneStored(400, "invalid_file_name", "The file name must not hold the segment `..`."),
      ...noneStored(413, "file_too_large", "The file is larger than 25 MiB."),
      ...noneStored(
        429,
        "quota_exceeded",
        "There is no room for 1 more file: 10,000 of 10,000 files are stored.",
      ),
      ...noneStored(502, "storage_unavailable", "The file storage is away or full."),
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
  usage: {
    answers: json(200, {
      quotas: {
        summary: "Two quotas",
        value: {
          quotas: [
            { kind: "files", resource: "bytes", used: 996_000, limit: 1_000_000 },
            { kind: "files", resource: "objects", used: 12, limit: 1000 },
          ],
        },
      },
      none: { summary: "A service without quotas", value: { quotas: [] } },
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
  sessionFile: {
    answers: {
      200: { "application/octet-stream": { file: { summary: "A file", value: "x,y\n1,2\n" } } },
    },
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
    answers: {
      ...json(202, {
        job: {
          summary: "With Prefer: respond-async",
          value: { job_id: "Vq3xN8sT0_mJ-4rLw2Kdz", status: "queued" },
        },
      }),
      200: {
        ...events(executed),
        "application/json": {
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
        },
      },
    },
  },
  ...JOB_EXAMPLES,
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
    answers: {
      200: {
        ...events({ status: "completed", ...ended }),
        "application/json": {
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
        },
      },
    },
  },
  cancelProgrammatic: {
    request: { label: { summary: "By the label of a start", value: { request_id: "turn-17" } } },
    answers: json(200, {
      cancelled: { summary: "One program", value: { status: "cancelled", cancelled: 1 } },
    }),
  },
};
