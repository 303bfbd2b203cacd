/** The client: a method for each operation of the service, with the names that the service uses. */
import type { ExecResponse, Languages, UploadResponse } from "./api.generated.ts";
import { type RunEvent, runEvents } from "./events.ts";
import { type CallOptions, Http, type SvcOptions } from "./http.ts";
import { bodyOf, type Program } from "./inputs.ts";
import { Jobs } from "./jobs.ts";
import { type Result, type UploadedFile, withFiles } from "./results.ts";
import { Sessions } from "./sessions.ts";
import { type Tools, WithTools } from "./tools.ts";

export interface RunOptions extends CallOptions {
  /** Within ten minutes, the same key and program run only once. */
  idempotencyKey?: string | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Path under which programs find the file. Default: the name of the file. */
  name?: string | undefined;
  /** Default: the type of the Blob. */
  contentType?: string | undefined;
  /** Owner of the file: the caller, or an agent or a skill. Every user of the tenant may read files of agents and skills. */
  kind?: "user" | "agent" | "skill" | undefined;
  /** Id of the agent or skill. */
  resourceId?: string | undefined;
  /** Version of the skill. */
  version?: number | undefined;
  /** Programs cannot change the file. */
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

  /** Runs a program to its end. A program that fails also has a result: see `code` and `status`. */
  async run(program: Program, options: RunOptions = {}): Promise<Result> {
    return withFiles(await this.#http.json<ExecResponse>(execRequest(program, options)), this.#http);
  }

  /** Like `run`, with the output of the program while it runs. Leaving the loop early cancels the run. */
  async *stream(program: Program, options: RunOptions = {}): AsyncGenerator<RunEvent, void> {
    const request = execRequest(program, options, { accept: "text/event-stream" });
    yield* runEvents(await this.#http.send(request), this.#http, options.signal);
  }

  /** Offers functions that programs can call. */
  withTools(tools: Tools): WithTools {
    return new WithTools(this.#http, tools);
  }

  /** Uploads a file, given by its path (in Node) or as bytes. */
  async upload(
    file: string | Blob,
    { name, contentType, kind, resourceId, version, readOnly, ...options }: UploadOptions = {},
  ): Promise<UploadedFile> {
    // Without a kind the service would store the file as the caller's own.
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
 * A form of fields and one file (RFC 7578). FormData writes a quote in a file name as %22, which changes the name. This function keeps
 * every character.
 */
function formOf(
  { blob, name, type }: { blob: Blob; name: string; type: string },
  fields: Readonly<Record<string, string | number | boolean | undefined>>,
): { headers: Record<string, string>; body: Blob } {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  // A line end could inject a header or a part.
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
