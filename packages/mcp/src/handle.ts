/**
 * Errors of the protocol, and handlers whose parameters are checked here: the SDK would tell wrong ones as an internal error in the words of
 * its library.
 */
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { Protocol, type RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { ErrorCode, type ServerNotification, type ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { problemsOf } from "@svc/contracts";
import { z } from "zod";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Of a resource that is not there (the protocol's section on resources); the SDK has no name for it. */
export const RESOURCE_NOT_FOUND = -32002;

/** The SDK sends code and message as they are; its own McpError puts the code into the message, too. */
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
  // Server's own method checks calls of tools once more, in the same words.
  Protocol.prototype.setRequestHandler.call(server, anyParameters, (request, extra) => {
    const parsed = schema.safeParse(request);
    if (parsed.success) return handler(parsed.data, extra as Extra) as Promise<Record<string, unknown>>;
    const [{ path, problem } = { path: "params", problem: "is not valid" }] = problemsOf(parsed.error);
    throw new ProtocolError(ErrorCode.InvalidParams, `${path}: ${problem}.`);
  });
}
