/**
 * The server with which the refusals of a flood are compared. It refuses every request as soon as it has the request's
 * head. Runs as a process of its own; prints its address.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const REFUSAL = JSON.stringify({ error: "rate_limited" });

const server = createServer((request, response) => {
  request.resume();
  response.writeHead(429, { "content-type": "application/json", "retry-after": "1" }).end(REFUSAL);
});

server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
