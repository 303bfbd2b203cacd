/** The client of the measurements: keep-alive connections, every answer checked, nothing parsed that need not be. */
import { Agent, request } from "node:http";
import { buffer } from "node:stream/consumers";

export interface Answer {
  status: number;
  body: Buffer;
}

export interface FileRef {
  id: string;
  storage_session_id: string;
  name: string;
}

export class LoadClient {
  readonly #base: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256, scheduling: "lifo" });

  constructor(url: string) {
    this.#base = new URL(url);
  }

  send(method: string, path: string, type?: string, body?: Buffer): Promise<Answer> {
    const { hostname, port, pathname } = this.#base;
    const headers = body === undefined ? {} : { "content-type": type, "content-length": body.length };
    const options = { hostname, port, path: joined(pathname, path), method, headers, agent: this.#agent };
    return new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        buffer(response).then((bytes) => resolve({ status: response.statusCode ?? 0, body: bytes }), reject);
      });
      sent.once("error", reject);
      sent.end(body);
    });
  }

  /** GETs and counts the bytes of a 200 without keeping them. */
  drain(path: string): Promise<number> {
    const { hostname, port, pathname } = this.#base;
    const options = { hostname, port, path: joined(pathname, path), agent: this.#agent };
    return new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
        });
        response.once("error", reject);
        response.once("end", () => {
          if (response.statusCode === 200) resolve(bytes);
          else reject(new Error(`${path} answered ${response.statusCode}`));
        });
      });
      sent.once("error", reject);
      sent.end();
    });
  }

  /** Runs a program; throws unless it ended well with this text on stdout. */
  async exec(
    lang: string,
    code: string,
    expected: string,
    files?: readonly FileRef[],
  ): Promise<{ files: FileRef[] }> {
    const body = Buffer.from(JSON.stringify({ lang, code, ...(files ? { files } : {}) }));
    const answer = await this.send("POST", "/exec", "application/json", body);
    const result = demand(answer, "exec") as { code: number; stdout: string; files: FileRef[] };
    if (result.code !== 0 || !result.stdout.includes(expected)) {
      throw new Error(`unexpected result: ${answer.body.toString().slice(0, 500)}`);
    }
    return result;
  }

  /** The JSON of a 200. */
  async get(path: string): Promise<unknown> {
    return demand(await this.send("GET", path), path);
  }

  /** POSTs JSON; the JSON of a 200. */
  async json(path: string, body: unknown): Promise<unknown> {
    return demand(await this.send("POST", path, "application/json", Buffer.from(JSON.stringify(body))), path);
  }

  async upload(files: readonly { name: string; content: Buffer }[]): Promise<FileRef[]> {
    const { type, body } = uploadForm(files);
    const answer = await this.send("POST", "/upload", type, body);
    const result = demand(answer, "upload") as { storage_session_id: string; files: FileRef[] };
    return result.files.map((file) => ({ ...file, storage_session_id: result.storage_session_id }));
  }

  async download(file: FileRef): Promise<Buffer> {
    const answer = await this.send("GET", `/download/${file.storage_session_id}/${file.id}`);
    if (answer.status !== 200)
      throw new Error(`download: ${answer.status} ${answer.body.toString().slice(0, 300)}`);
    return answer.body;
  }

  async remove(file: FileRef): Promise<void> {
    demand(await this.send("DELETE", `/files/${file.storage_session_id}/${file.id}`), "delete");
  }

  /** POSTs JSON and hangs up after so long; throws when an answer came before. */
  abandon(path: string, body: unknown, afterMs: number): Promise<void> {
    const { hostname, port, pathname } = this.#base;
    const headers = { "content-type": "application/json" };
    const options = {
      hostname,
      port,
      path: joined(pathname, path),
      method: "POST",
      headers,
      agent: this.#agent,
    };
    return new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        response.resume();
        reject(new Error(`${path} answered ${response.statusCode} before it was abandoned`));
      });
      let hungUp = false;
      sent.once("error", (error) => (hungUp ? resolve() : reject(error)));
      sent.once("close", () => clearTimeout(timer));
      const timer = setTimeout(() => {
        hungUp = true;
        sent.destroy(new Error("abandoned"));
      }, afterMs);
      sent.end(JSON.stringify(body));
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function demand(answer: Answer, what: string): unknown {
  if (answer.status !== 200)
    throw new Error(`${what}: ${answer.status} ${answer.body.toString().slice(0, 300)}`);
  return JSON.parse(answer.body.toString());
}

const joined = (base: string, path: string): string => base.replace(/\/$/, "") + path;

/** The body of an upload and its type. */
export function uploadForm(files: readonly { name: string; content: Buffer }[]): {
  type: string;
  body: Buffer;
} {
  const boundary = "----svc-bench-boundary";
  const parts = files.flatMap(({ name, content }) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    ),
    content,
    Buffer.from("\r\n"),
  ]);
  const body = Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, body };
}
