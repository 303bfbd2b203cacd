/**
 * The server over streamable HTTP. Nothing is kept between requests: each has a server and a transport of its own, which end
 * with its answer. So any process of the API can answer any request, also after a restart.
 */
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { type HttpServiceOptions, httpService } from "./http-service.ts";
import { createServer, type ServerOptions } from "./server.ts";

export interface Post extends Omit<ServerOptions, "service"> {
  /** Where the calls of the message go, and as whom. */
  inner: HttpServiceOptions;
  headers: Headers;
  /** One message, parsed. */
  message: unknown;
  /** Aborted when its client has left or cancelled it: what it asked for ends then. */
  signal: AbortSignal;
}

/** The transport demands one, and reads only its form. */
const ANY_URL = "http://localhost/mcp";

/** Answers a POST. The body of the answer goes on until the message has its response. */
export async function answerPost({ inner, headers, message, signal, ...options }: Post): Promise<Response> {
  const server = createServer({ ...options, service: httpService(inner) });
  const transport = new WebStandardStreamableHTTPServerTransport();
  await server.connect(transport);
  const close = () => void server.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return transport.handleRequest(new Request(ANY_URL, { method: "POST", headers }), { parsedBody: message });
}
