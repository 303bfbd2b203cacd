/** What the server does with answers that are not the service's. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { httpService } from "@svc/mcp/http-service";
import { contentOf } from "@svc/mcp/run-content";
import { type Service, ServiceRefusal } from "@svc/mcp/service";
import type { Result } from "svc-client";
import { expect, onTestFinished, test } from "vitest";

const HTML = "<html>Log in</html>";
const FILE = { id: "f", session_id: "s" };

async function served(listener: RequestListener): Promise<Service> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once("listening", resolve));
  return httpService({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

test("a redirect to a page is neither a file nor a list", async () => {
  const paths: string[] = [];
  const service = await served((request, response) => {
    paths.push(request.url ?? "");
    if (request.url === "/login") response.end(HTML);
    else response.writeHead(302, { location: "/login" }).end();
  });
  const { signal } = new AbortController();
  await expect(service.download(FILE, 1000, signal)).rejects.toThrow(ServiceRefusal);
  await expect(service.sessionFile("s", "a", 1000, signal)).rejects.toThrow(ServiceRefusal);
  await expect(service.filesOf("s", signal)).rejects.toThrow(/answered 302/);
  expect(paths).not.toContain("/login");
});

test.each([200, 503])(
  "an answer %i that is cut is refused, and a run keeps its result without the picture",
  async (status) => {
    const service = await served((_request, response) => {
      response.writeHead(status, { "content-length": 1000 });
      response.write("x".repeat(100), () => response.destroy());
    });
    const { signal } = new AbortController();
    await expect(service.download(FILE, 1000, signal)).rejects.toThrow(ServiceRefusal);
    const plot = {
      id: "f",
      storage_session_id: "s",
      name: "plot.png",
      size: 1000,
      content_type: "image/png",
    };
    const answer = { stdout: "42\n", stderr: "", code: 0, signal: null, message: null, files: [plot] };
    const content = await contentOf(answer as unknown as Result, service, signal);
    expect(content).toMatchObject([
      { type: "text", text: expect.stringMatching(/^42\n/) },
      { type: "resource_link", name: "plot.png" },
    ]);
  },
);

test("a call that was given up while its answer came ends with the reason", async () => {
  const left = new AbortController();
  const service = await served((_request, response) => {
    response.writeHead(200, { "content-length": 1000 });
    response.write("x".repeat(100), () => left.abort(new Error("enough")));
  });
  await expect(service.download(FILE, 1000, left.signal)).rejects.toThrow("enough");
});

test.each([200, 500])(
  "an answer %i that is too large is called a file only where it is one",
  async (status) => {
    const service = await served((_request, response) => {
      response.writeHead(status).end(Buffer.alloc(8 * 2 ** 20 + 1, "x"));
    });
    const { signal } = new AbortController();
    const answer = "The answer of the service has more than 8,388,608 bytes.";
    const file = "The file has more than 1,000 bytes; read a part of it with run_code.";
    await expect(service.filesOf("s", signal)).rejects.toThrow(answer);
    await expect(service.download(FILE, 1000, signal)).rejects.toThrow(status === 200 ? file : answer);
  },
);
