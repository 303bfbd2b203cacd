/** How the document describes the headers of requests and answers. */

interface Header {
  description: string;
  schema: Readonly<Record<string, unknown>>;
}

const text = (description: string, example: string): Header => ({
  description,
  schema: { type: "string", example },
});
const count = (description: string, example: number): Header => ({
  description,
  schema: { type: "integer", minimum: 0, example },
});

export const REQUEST_HEADERS = {
  "X-Request-Id": {
    description: "Kept as the id of the request when it fits; else the service makes one.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._:-]{1,128}$", example: "req-7f3a" },
  },
  "X-CodeAPI-Expected-Profile": {
    description: "`stateful` is refused where sessions are not kept; anything else has no effect.",
    schema: { type: "string", example: "default" },
  },
  "X-LibreChat-Code-Workspace-ID": {
    description: "Refused when it is given: attached workspaces are not offered.",
    schema: { type: "string" },
  },
  "X-LibreChat-Code-Request-ID": {
    description: "Label of a start, at most 128 characters: the cancel route takes it.",
    schema: { type: "string", maxLength: 128, example: "turn-17" },
  },
  "Idempotency-Key": {
    description:
      "The same key and body within 600 s give the stored 200 answer; while the first request runs, the second waits for it. " +
      "Keys of different callers are apart.",
    schema: { type: "string", pattern: "^[\\x20-\\x7e]{1,255}$", example: "order-1001" },
  },
  Prefer: text(
    "`respond-async`: 202 at once; the program runs as a job that is asked for later (RFC 7240).",
    "respond-async",
  ),
  Range: text("One byte range is answered with 206; several with the whole file.", "bytes=0-1023"),
  "If-Range": text("The range counts only when the file is still this one.", '"0cc175b9c0f1b6a8"'),
  "If-None-Match": text("304 when the file is still this one.", '"0cc175b9c0f1b6a8"'),
  "If-Modified-Since": text("304 when the file is not newer.", "Sat, 31 Jan 2026 10:00:00 GMT"),
} as const satisfies Record<string, Header>;
export type RequestHeader = keyof typeof REQUEST_HEADERS;

export const ANSWER_HEADERS = {
  "X-Request-Id": text("The id of the request: the one that was given, or a new one.", "req-7f3a"),
  "RateLimit-Limit": count("Requests that are allowed in a window.", 20),
  "RateLimit-Remaining": count("Requests that are left in this window.", 19),
  "RateLimit-Reset": count("Seconds until the window ends.", 30),
  "RateLimit-Policy": text("Requests and seconds of a window.", "20;w=30"),
  "Retry-After": count("Seconds after which to send the request again.", 2),
  "WWW-Authenticate": text("What is wanted.", "Bearer"),
  "X-SVC-Ignored-Fields": text("Fields of the body that have no effect, comma-separated.", "timeout_ms"),
  "Idempotency-Replayed": text("`true`: the answer of an earlier request with the same key.", "true"),
  Location: text("Where the job is.", "/v1/jobs/Vq3xN8sT0_mJ-4rLw2Kdz"),
  "Preference-Applied": text("What of `Prefer` was done.", "respond-async"),
  "Accept-Ranges": text("Ranges may be asked for.", "bytes"),
  "Cache-Control": text("Only for the caller, and only after asking again.", "private, no-cache"),
  "Content-Disposition": text(
    "The name of the file, in ASCII and in UTF-8.",
    "attachment; filename=points.csv",
  ),
  "Content-Length": count("Bytes of the body.", 8),
  "Content-Range": text("Which bytes these are, and of how many; of a 416 only how many.", "bytes 0-7/1024"),
  ETag: text("Changes with the bytes.", '"0cc175b9c0f1b6a8"'),
  "Last-Modified": text("When it was stored.", "Sat, 31 Jan 2026 10:00:00 GMT"),
  "X-Content-Type-Options": text("Browsers must not guess the type.", "nosniff"),
  "X-Read-Only": text("`true`: programs cannot change it.", "true"),
} as const satisfies Record<string, Header>;
export type AnswerHeader = keyof typeof ANSWER_HEADERS;

/** Headers that are absent from some answers. All others are there wherever the document lists them. */
export const SOMETIMES: ReadonlySet<AnswerHeader> = new Set([
  "X-SVC-Ignored-Fields",
  "Idempotency-Replayed",
  "X-Read-Only",
]);

/** Headers of every answer of a limited route to an authenticated caller. */
export const WINDOW_HEADERS = [
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
  "RateLimit-Policy",
] as const satisfies AnswerHeader[];

/** The headers that are sent even when Redis is unreachable. */
export const POLICY_HEADERS = ["RateLimit-Limit", "RateLimit-Policy"] as const satisfies AnswerHeader[];
