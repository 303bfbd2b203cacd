/** Variables that only the tool call server reads. */
import { port, text, type Variable } from "../types.ts";

export const TOOL_CALL_SERVER = {
  TOOL_CALL_SERVER_PORT: port(3033, "Port of the tool call server."),
  TOOL_CALL_SERVER_HOST: text("127.0.0.1", "Address that the tool call server listens on."),
} satisfies Record<string, Variable<unknown>>;
