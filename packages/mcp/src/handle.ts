/**
 * Errors of the protocol, and handlers whose parameters are checked here. The SDK would report wrong parameters as an internal error,
 * in the words of its validation library.
 */
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { Protocol, type RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { ErrorCode, type ServerNotification, type ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { problemsOf } from "@svc/contracts";
import { z } from "zod";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Code for a resource that does not exist (the protocol's section on resources). The SDK has no name for it. */
export const RESOURCE_NOT_FOUND = -32002;

/** The SDK sends code and message unchanged. Its own McpError puts the code into the message, too. */
export class ProtocolError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export function handle<Schema extends z.ZodObject<{ method: z.ZodLiteral<string> }>>(
  server: Server,
  schema: Schema,
  handler: (request: z.infer<Schema>, extra: Extra) => object | Promise<object>,
): void {
  const anyParameters = z.looseObject({ method: z.literal(schema.shape.method.value) });
  // Server's own method would check tool calls once more, and report errors in the words of the library.
  Protocol.prototype.setRequestHandler.call(server, anyParameters, (request, extra) => {
    const parsed = schema.safeParse(request);
    if (parsed.success) return handler(parsed.data, extra as Extra) as Promise<Record<string, unknown>>;
    const [{ path, problem } = { path: "params", problem: "is not valid" }] = problemsOf(parsed.error);
    throw new ProtocolError(ErrorCode.InvalidParams, `${path}: ${problem}.`);
  });
}
