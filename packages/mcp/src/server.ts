/**
 * The MCP server over the service, for one client and any transport. It keeps nothing between requests. Errors of programs are
 * results; errors of the service are tool errors with its sentence; unexpected errors go to `onError` and are hidden from the client.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { type Extra, handle, ProtocolError, RESOURCE_NOT_FOUND } from "./handle.ts";
import { listResources, readResource, TEMPLATES } from "./resources.ts";
import { type Service, ServiceRefusal } from "./service.ts";
import { TOOLS } from "./tools/tools.ts";

export interface ServerOptions {
  service: Service;
  version: string;
  onError: (error: unknown) => void;
}

const INSTRUCTIONS =
  "Runs untrusted programs in single-use sandboxes without network. Files are written to /mnt/data and come back with the result.";
/** Error codes of the service for a resource that does not exist. */
const ABSENT: ReadonlySet<string | undefined> = new Set(["file_not_found", "not_found"]);
const LOST = "The connection to the service was lost.";

export function createServer({ service, version, onError }: ServerOptions): Server {
  const server = new Server(
    { name: "svc", title: "svc code execution", version },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS },
  );
  const sentence = (error: unknown): string => {
    if (error instanceof ServiceRefusal) return error.message;
    onError(error);
    return LOST;
  };
  const reading = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      const isAbsent = error instanceof ServiceRefusal && ABSENT.has(error.code);
      throw new ProtocolError(isAbsent ? RESOURCE_NOT_FOUND : ErrorCode.InternalError, sentence(error));
    }
  };
  handle(server, ListToolsRequestSchema, () => ({ tools: [...TOOLS.values()].map(({ listed }) => listed) }));
  handle(server, CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const tool = TOOLS.get(params.name);
    if (tool === undefined) throw new ProtocolError(ErrorCode.InvalidParams, "There is no such tool.");
    const { signal } = extra;
    try {
      return await tool.call(params.arguments, { service, signal, onOutput: progressOf(extra) });
    } catch (error) {
      // Nobody reads the result of a call that was cancelled.
      const text = signal.aborted ? LOST : sentence(error);
      return { content: [{ type: "text", text }], isError: true };
    }
  });
  handle(server, ListResourcesRequestSchema, async (_request, { signal }) => ({
    resources: await reading(listResources(service, signal)),
  }));
  handle(server, ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: TEMPLATES }));
  handle(server, ReadResourceRequestSchema, ({ params }, { signal }) =>
    reading(readResource(params.uri, service, signal)),
  );
  server.onerror = onError;
  return server;
}

/** If the caller asked for progress, output becomes notifications: `message` is the text, `progress` the characters so far. */
function progressOf({ _meta, sendNotification }: Extra): (text: string) => void {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let progress = 0;
  return (message) => {
    progress += message.length;
    const params = { progressToken, progress, message };
    // Nothing to do for a client that has left: its signal reports that.
    sendNotification({ method: "notifications/progress", params }).catch(() => undefined);
  };
}
