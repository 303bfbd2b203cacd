/** What the server does with answers that are not the service's. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { httpService } from "@svc/mcp/http-service";
import { ServiceRefusal } from "@svc/mcp/service";
import { expect, onTestFinished, test } from "vitest";

const HTML = "<html>Log in</html>";
const FILE = { id: "f", session_id: "s" };

test("a redirect to a page is neither a file nor a list", async () => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    if (request.url === "/login") response.end(HTML);
    else response.writeHead(302, { location: "/login" }).end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const service = httpService({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  const { signal } = new AbortController();
  await expect(service.download(FILE, 1000, signal)).rejects.toThrow(ServiceRefusal);
  await expect(service.sessionFile("s", "a", 1000, signal)).rejects.toThrow(ServiceRefusal);
  await expect(service.filesOf("s", signal)).rejects.toThrow(/answered 302/);
  expect(paths).not.toContain("/login");
});
