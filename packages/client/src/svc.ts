/** The client: a method for what the service does, under the names that the service gives it. */
import type { ExecResponse, Languages, UploadResponse } from "./api.generated.ts";
import { type RunEvent, runEvents } from "./events.ts";
import { type CallOptions, Http, type SvcOptions } from "./http.ts";
import { bodyOf, type Program } from "./inputs.ts";
import { Jobs } from "./jobs.ts";
import { type Result, type UploadedFile, withFiles } from "./results.ts";
import { Sessions } from "./sessions.ts";
import { type Tools, WithTools } from "./tools.ts";

export interface RunOptions extends CallOptions {
  /** The same key and program are run once, for ten minutes. */
  idempotencyKey?: string | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Path under which programs find it; by default the name of the file. */
  name?: string | undefined;
  /** The type of the Blob, unless it is given. */
  contentType?: string | undefined;
  /** Whose it is: the caller's, or that of an agent or a skill, which every user of the tenant may read. */
  kind?: "user" | "agent" | "skill" | undefined;
  /** Id of the agent or skill. */
  resourceId?: string | undefined;
  /** Of the skill. */
  version?: number | undefined;
  /** Programs cannot change it. */
  readOnly?: boolean | undefined;
}

export class Svc {
  readonly #http: Http;
  readonly jobs: Jobs;
  readonly sessions: Sessions;

  constructor(options: SvcOptions) {
    this.#http = new Http(options);
    this.jobs = new Jobs(this.#http);
    this.sessions = new Sessions(this.#http);
  }

  /** Runs a program to its end. One that fails is a result: see `code` and `status`. */
  async run(program: Program, options: RunOptions = {}): Promise<Result> {
    return withFiles(await this.#http.json<ExecResponse>(execRequest(program, options)), this.#http);
  }

  /** The same, with what the program writes while it runs. Leaving the loop early cancels the run. */
  async *stream(program: Program, options: RunOptions = {}): AsyncGenerator<RunEvent, void> {
    const request = execRequest(program, options, { accept: "text/event-stream" });
    yield* runEvents(await this.#http.send(request), this.#http, options.signal);
  }

  /** Functions that programs can call. */
  withTools(tools: Tools): WithTools {
    return new WithTools(this.#http, tools);
  }

  /** Stores a file, by its path (in Node) or its bytes. */
  async upload(
    file: string | Blob,
    { name, contentType, kind, resourceId, version, readOnly, ...options }: UploadOptions = {},
  ): Promise<UploadedFile> {
    // The service would store it as the caller's own.
    if ((kind ?? "user") === "user" && (resourceId ?? version) !== undefined)
      throw new TypeError("resourceId and version are of an agent or a skill: give its kind, too.");
    const { blob, own } = typeof file === "string" ? await fromDisk(file) : { blob: file, own: nameOf(file) };
    const fields = { kind, id: resourceId, version, read_only: readOnly };
    const form = formOf({ blob, name: name ?? own, type: contentType ?? blob.type }, fields);
    const answer = await this.#http.json<UploadResponse>({
      method: "POST",
      path: "/upload",
      ...form,
      ...options,
    });
    const owner = kind === undefined ? {} : { kind, resource_id: resourceId, version };
    const files = answer.files.map((stored) => ({ ...stored, ...owner }));
    return withFiles({ files }, this.#http).files[0] as UploadedFile;
  }

  async languages(options: CallOptions = {}): Promise<Languages["languages"]> {
    return (await this.#http.json<Languages>({ method: "GET", path: "/languages", ...options })).languages;
  }
}

function execRequest(
  program: Program,
  { idempotencyKey, ...options }: RunOptions,
  headers: Readonly<Record<string, string>> = {},
) {
  return {
    method: "POST",
    path: "/exec",
    headers: {
      "content-type": "application/json",
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      ...headers,
    },
    body: bodyOf(program),
    ...options,
  } as const;
}

const nameOf = (blob: Blob) => ("name" in blob && typeof blob.name === "string" ? blob.name : "file");

/**
 * A form of fields and one file (RFC 7578). FormData writes a quote as %22, which is a name of its own; so this writes every character as
 * it is told.
 */
function formOf(
  { blob, name, type }: { blob: Blob; name: string; type: string },
  fields: Readonly<Record<string, string | number | boolean | undefined>>,
): { headers: Record<string, string>; body: Blob } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  // A line end would begin a header or a part of its own.
  if ([type, ...given.map(([, value]) => `${value}`)].some((text) => /[\r\n]/.test(text)))
    throw new TypeError("contentType and resourceId are each one line.");
  const boundary = `svc-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  const parts = given.map(
    ([field, value]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  );
  const head = [
    `--${boundary}`,
    `Content-Disposition: form-data; name="file"; filename*=UTF-8''${encodeURIComponent(name)}`,
    `Content-Type: ${type || "application/octet-stream"}`,
  ];
  const body = new Blob([...parts, `${head.join("\r\n")}\r\n\r\n`, blob, `\r\n--${boundary}--\r\n`]);
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body };
}

async function fromDisk(path: string): Promise<{ blob: Blob; own: string }> {
  const [{ openAsBlob }, { basename }] = await Promise.all([import("node:fs"), import("node:path")]);
  return { blob: await openAsBlob(path), own: basename(path) };
}
