/** The client against servers that answer something else than the service does. */
import { mkdtempSync, openAsBlob, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ConnectionFailedError,
  ConnectionLostError,
  type ResultFile,
  Svc,
  type SvcOptions,
} from "svc-client";
import { Agent, fetch as undici } from "undici";
import { describe, expect, onTestFinished, test } from "vitest";

const program = { language: "bash", code: "" };
const HTML = "<html>Log in</html>";
const FILE = { id: "f", storage_session_id: "s", name: "a.csv", size: 4, content_type: "text/csv" };

async function served(listener: RequestListener, options: Partial<SvcOptions> = {}): Promise<Svc> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once("listening", resolve));
  return new Svc({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...options });
}

async function all<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const read: Event[] = [];
  for await (const event of events) read.push(event);
  return read;
}

const page = (response: ServerResponse, status = 200) =>
  void response.writeHead(status, { "content-type": "text/html" }).end(HTML);

/** The first file of a run that left this one; `other` answers everything else. */
async function fileOf(file: object, other: RequestListener): Promise<ResultFile> {
  const svc = await served((request, response) => {
    if (request.url === "/v1/exec") response.end(JSON.stringify({ files: [file] }));
    else other(request, response);
  });
  return (await svc.run(program)).files[0] as ResultFile;
}

describe("a page instead of the answer", () => {
  test("of a stream is an error of the client", async () => {
    const other = await served((_request, response) => page(response));
    await expect(all(other.stream(program))).rejects.toThrow(ConnectionFailedError);
    await expect(all(other.jobs.events("j"))).rejects.toThrow(ConnectionFailedError);
  });

  test("of a redirect is none: nothing was cancelled or run", async () => {
    const paths: string[] = [];
    const login = await served((request, response) => {
      paths.push(`${request.method} ${request.url}`);
      if (request.url === "/login") page(response);
      else response.writeHead(302, { location: "/login" }).end();
    });
    const refused = { code: "connection_failed", status: 302 };
    await expect(login.jobs.cancel("j")).rejects.toMatchObject(refused);
    await expect(login.sessions.delete("s")).rejects.toMatchObject(refused);
    await expect(login.run(program)).rejects.toMatchObject(refused);
    expect(paths).toEqual(["DELETE /v1/jobs/j", "DELETE /v1/sessions/s", "POST /v1/exec"]);
  });

  test("with status 200 has cancelled nothing, and is no file", async () => {
    const other = await served((_request, response) => page(response));
    const refused = { code: "connection_failed", status: 200 };
    await expect(other.jobs.cancel("j")).rejects.toMatchObject(refused);
    await expect(other.sessions.delete("s")).rejects.toMatchObject(refused);
    const file = await fileOf(FILE, (_request, response) => page(response));
    await expect(file.download()).rejects.toMatchObject(refused);
    await expect(file.text()).rejects.toMatchObject(refused);
  });

  test("that never ends is given up", { timeout: 30_000 }, async () => {
    const endless = await served((_request, response) => {
      response.writeHead(502);
      const more = () => {
        while (response.write("x".repeat(65_536)));
      };
      response.on("drain", more);
      more();
    });
    await expect(endless.run(program)).rejects.toMatchObject({ code: "connection_failed", status: 502 });
  });

  test("that stops in its midst ends with the signal, which says why", async () => {
    const ended = new AbortController();
    const hanging = await served((_request, response) => {
      response.writeHead(502).write("<html>", () => setTimeout(() => ended.abort(new Error("enough")), 200));
    });
    await expect(hanging.run(program, { signal: ended.signal })).rejects.toThrow("enough");
  });
});

test("a stream that ends without a result was lost", async () => {
  const ended = await served((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end('event: started\ndata: {"session_id":"s"}\n\n');
  });
  const lost = {
    code: "connection_failed",
    status: 0,
    cause: { message: expect.stringMatching(/without a result/) },
  };
  await expect(all(ended.stream(program))).rejects.toThrow(ConnectionLostError);
  await expect(all(ended.jobs.events("j"))).rejects.toMatchObject(lost);
});

test("an error that ends a stream has the usual status of its code, not the 200 that the stream began with", async () => {
  const told = { error: "sandbox_execution_failed", message: "It broke.", request_id: "r" };
  const broken = await served((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`event: stdout\ndata: {"text":"a"}\n\nevent: error\ndata: ${JSON.stringify(told)}\n\n`);
  });
  const fails = { code: "sandbox_execution_failed", status: 502, requestId: "r" };
  await expect(all(broken.stream(program))).rejects.toMatchObject(fails);
});

test("a fetch that waits no longer is not a service that cannot be reached", async () => {
  const dispatcher = new Agent({ headersTimeout: 100 });
  onTestFinished(() => dispatcher.close());
  const impatient = (url: string, init: object) => undici(url, { ...init, dispatcher });
  const silent = await served(() => undefined, { fetch: impatient as never });
  await expect(silent.run(program)).rejects.toThrow(/did not answer for as long as fetch waits/);
});

test("a file to upload that cannot be read, or that changed, is no service that cannot be reached", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-client-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const svc = await served((request, response) => void request.resume().on("end", () => response.end("{}")));
  await expect(svc.upload(folder)).rejects.toMatchObject({ name: "NotReadableError" });
  const path = join(folder, "a.csv");
  writeFileSync(path, "1,2");
  const before = await openAsBlob(path);
  writeFileSync(path, "1,2,3,4");
  await expect(svc.upload(before)).rejects.toMatchObject({ name: "NotReadableError" });
});

describe("a file of a run", () => {
  test.each([
    ["a user", { kind: "user" }, ""],
    ["an agent", { kind: "agent", resource_id: "a:1" }, "?kind=agent&id=a%3A1"],
    ["a skill", { kind: "skill", resource_id: "s1", version: 2.5 }, "?kind=skill&id=s1&version=2.5"],
  ])("of %s is asked for as whose it is", async (_whose, owner, query) => {
    const paths: (string | undefined)[] = [];
    const file = await fileOf({ ...FILE, ...owner }, (request, response) => {
      paths.push(request.url);
      response.end("1,2\n");
    });
    expect(await file.text()).toBe("1,2\n");
    expect(new TextDecoder().decode(await file.download())).toBe("1,2\n");
    expect(await new Response(await file.stream()).text()).toBe("1,2\n");
    expect(paths).toEqual(Array(3).fill(`/v1/download/s/f${query}`));
  });

  test("is an input with all that tells whose it is", async () => {
    const bodies: string[] = [];
    const svc = await served((request, response) => {
      request.setEncoding("utf8").on("data", (text: string) => bodies.push(text));
      request.on("end", () => response.end('{"files": []}'));
    });
    const file = {
      id: "f",
      storage_session_id: "s",
      name: "a",
      kind: "agent",
      resource_id: "a1",
      entity_id: "e",
    };
    await svc.run({ ...program, files: [file] });
    expect(JSON.parse(bodies.join(""))).toMatchObject({ files: [file] });
  });
});
