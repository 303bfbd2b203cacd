/**
 * The MCP server over streamable HTTP. It is stateless: each request has its own server and transport, which end with its response.
 * So any process of the API can answer any request, even after a restart.
 */
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { type HttpServiceOptions, httpService } from "./http-service.ts";
import { createServer, type ServerOptions } from "./server.ts";

export interface Post extends Omit<ServerOptions, "service"> {
  /** The service that the message's calls go to, and their credentials. */
  inner: HttpServiceOptions;
  headers: Headers;
  /** One message, parsed. */
  message: unknown;
  /** Aborted when the client has left or cancelled the message. This ends what the message asked for. */
  signal: AbortSignal;
}

/** The transport demands a URL, but reads only its form. */
const ANY_URL = "http://localhost/mcp";

/** Answers a POST. The body of the HTTP response stays open until the message has its response. */
export async function answerPost({ inner, headers, message, signal, ...options }: Post): Promise<Response> {
  const server = createServer({ ...options, service: httpService(inner) });
  const transport = new WebStandardStreamableHTTPServerTransport();
  await server.connect(transport);
  const close = () => void server.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return transport.handleRequest(new Request(ANY_URL, { method: "POST", headers }), { parsedBody: message });
}
